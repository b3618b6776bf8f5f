import { Node } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { nodeColumns } from "../view/nodes.ts";

export const nodeLs = defineCommand({
  name: "ls",
  summary: "List the nodes",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { nodes } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listNodes, {}),
    );
    printNodes(context, nodes, false);
    return EXIT.ok;
  },
});

export function printNodes(context: Context, nodes: readonly Node[], single: boolean): void {
  printListing(context, {
    columns: nodeColumns(context.world.nowMs()),
    rows: nodes,
    json: Node.toJSON,
    name: ({ name }) => `node/${name}`,
    none: "no node has joined yet: `forage node add` prints the command with which a host joins",
    single,
  });
}
