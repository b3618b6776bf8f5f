import { WhatIfResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { describeWhatIf } from "../view/what-if.ts";
import { answerByExitCode } from "./plan-exit.ts";
import { readSuppositions } from "./suppositions.ts";

export const whatIf = defineCommand({
  name: "whatif",
  summary: "Show what a lost, drained or added node or a scaled service would do, and change nothing",
  details: `The coordinator tries it out on a copy of the fleet, with the same decisions as in a real run, over the next half hour.
It supposes that new pods become ready. Several flags hold together; --lose any-1 tries the loss of each node on its own.
Exit codes: 0 every pod finds a node and no service falls below its minimum, 1 a pod finds none or a service falls below it, 255 it could not be tried out.`,
  flags: {
    lose: {
      type: "list",
      hint: "NODE|KEY=VALUE|any-1",
      help: "this node is lost, those of all nodes with a label such as zone=a, or any one of them",
    },
    drain: { type: "list", hint: "NODE", help: "this node is drained" },
    add: { type: "text", hint: "COUNT", help: "this number of nodes join" },
    like: { type: "text", hint: "NODE", help: "the added nodes are like this one" },
    scale: {
      type: "list",
      hint: "[NAMESPACE/]NAME=REPLICAS",
      help: "a container service has this number of replicas",
    },
  },
  run: (invocation) =>
    answerByExitCode(async () => {
      const context = contextOf(invocation);
      const suppositions = readSuppositions(invocation.flags, context.settings.namespace);
      const found = await withCoordinator(context, (coordinator) =>
        coordinator.call(operator.whatIf, { suppositions }),
      );
      printOne(
        context,
        () => WhatIfResponse.toJSON(found),
        () => describeWhatIf(found, context.paint),
      );
      return found.safe ? EXIT.ok : EXIT.changes;
    }),
});
