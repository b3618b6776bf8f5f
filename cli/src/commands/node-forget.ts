import { ForgetNodeResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";

export const nodeForget = defineCommand({
  name: "forget",
  summary: "Remove a node that won't come back",
  details: `Revokes the node's certificates and removes the records of its pods, so that replacements start on other nodes. A host that returns
is refused until it joins with a new token, and then stops the pods that it still runs. Claims on the node are lost, which takes --force.`,
  operands: [{ name: "NODE", required: true, help: "name of the node" }],
  flags: {
    force: { kind: "switch", help: "though it is connected, or claims lie on it whose data is lost then" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [name = ""] = invocation.operands;
    const forgotten = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.forgetNode, { name, force: invocation.flags.force }),
    );
    printOne(
      context,
      () => ForgetNodeResponse.toJSON(forgotten),
      () => summaryOf(name, forgotten),
    );
    return EXIT.ok;
  },
});

function summaryOf(name: string, { pods, claims }: ForgetNodeResponse): string {
  const lost = claims.map((claim) => `claim ${claim} is empty now\n`).join("");
  return `node/${name} is forgotten, with ${pods} ${pods === 1 ? "pod" : "pods"}\n${lost}`;
}
