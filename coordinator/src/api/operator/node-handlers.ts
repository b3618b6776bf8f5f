import type { Log } from "@forage/common/log";
import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import type { Handlers } from "../../rpc/serve.ts";
import { type DrainOptions, drainNode, watchDrain } from "./drain-node.ts";
import { forgetNode } from "./forget-node.ts";
import { type RebalanceOptions, rebalance } from "./rebalance.ts";
import { updateNode } from "./update-node.ts";

export interface NodeOptions extends DrainOptions, RebalanceOptions {
  readonly log: Log;
}

export type NodeHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  "updateNode" | "drainNode" | "watchDrain" | "forgetNode" | "rebalance"
>;

export function nodeHandlers(options: NodeOptions): NodeHandlers {
  return {
    updateNode: (request) => updateNode(request, options),
    drainNode: (request) => drainNode(request, options),
    watchDrain: (request, { signal }) => watchDrain(request, signal, options),
    forgetNode: (request) => forgetNode(request, options),
    rebalance: (request, { signal }) => rebalance(request, signal, options),
  };
}
