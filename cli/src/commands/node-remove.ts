import { ForgetNodeResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { confirmLoss } from "./confirm.ts";

export const nodeRemove = defineCommand({
  name: "remove",
  aliases: ["forget"],
  summary: "Remove a node that won't come back",
  details: `Revokes the node's certificates and removes the records of its pods, so that replacements start on other nodes. A host that returns
is refused until it joins with a new token, and then stops the pods that it still runs. Claims on the node are lost, which takes --force.`,
  operands: [{ name: "NODE", required: true, help: "name of the node" }],
  flags: {
    force: { type: "switch", help: "remove it although it is connected or has claims, whose data is lost" },
    yes: { type: "switch", short: "y", help: "don't ask on a terminal" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [name = ""] = invocation.operands;
    const question = `Remove node/${name} from ${context.settings.place()}, with the records of its pods?`;
    await confirmLoss(context, question, invocation.flags.yes);
    const removed = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.forgetNode, { name, force: invocation.flags.force }),
    );
    printOne(
      context,
      () => ForgetNodeResponse.toJSON(removed),
      () => summaryOf(name, removed),
    );
    return EXIT.ok;
  },
});

function summaryOf(name: string, { pods, claims }: ForgetNodeResponse): string {
  const lost = claims.map((claim) => `the data of claim ${claim} is lost\n`).join("");
  return `node/${name} is removed, with ${pods} ${pods === 1 ? "pod" : "pods"}\n${lost}`;
}
