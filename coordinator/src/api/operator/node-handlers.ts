import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import type { Logger } from "pino";
import type { Handlers } from "../../rpc/serve.ts";
import { type DrainOptions, drainNode, watchDrain } from "./drain-node.ts";
import { forgetNode } from "./forget-node.ts";
import { nodeView } from "./node-view.ts";
import { type RebalanceOptions, rebalance } from "./rebalance.ts";
import { updateNode } from "./update-node.ts";

export interface NodeOptions extends DrainOptions, RebalanceOptions {
  readonly log: Logger;
}

export type NodeHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  "listNodes" | "updateNode" | "drainNode" | "watchDrain" | "forgetNode" | "rebalance"
>;

export function nodeHandlers(options: NodeOptions): NodeHandlers {
  const { state, gateways } = options;
  return {
    listNodes: async ({ name }) => {
      const nodes = state.nodes().filter((node) => name === undefined || node.name === name);
      return { nodes: nodes.map((node) => nodeView(state, node, gateways)) };
    },
    updateNode: (request) => updateNode(request, options),
    drainNode: (request) => drainNode(request, options),
    watchDrain: (request, { signal }) => watchDrain(request, signal, options),
    forgetNode: (request) => forgetNode(request, options),
    rebalance: (request, { signal }) => rebalance(request, signal, options),
  };
}
