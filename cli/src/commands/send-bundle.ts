import { type Coordinator, forest, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import type { Context } from "../context.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { explainViolations } from "../manifest/explain-violations.ts";
import { pause } from "../pause.ts";
import type { Pruning } from "./prune.ts";

/** The apply id makes it safe to send a bundle again when the answer to it was lost. */
const MAX_SENDS = 4;
const SEND_PAUSE_MS = 500;

/** Returns the id of the rollout. Removes resources with the bundle's labels that it does not name as far as `prune` says. */
export async function sendBundle(
  context: Context,
  coordinator: Coordinator,
  bundle: Bundle,
  prune: Pruning,
): Promise<string> {
  const applyId = bundle.request.applyId === "" ? context.world.randomId() : bundle.request.applyId;
  for (let sends = 1; ; sends++) {
    try {
      const request = { ...bundle.request, applyId };
      const { namespace } = request;
      // A bundle without labels removes nothing.
      const free = prune.type === "all" || Object.keys(request.labels).length === 0;
      if (free) return (await coordinator.call(forest.applyResources, request)).rolloutId;
      const { rolloutId } = await coordinator.call(operator.apply, {
        namespace,
        bundle: request,
        keepOthers: prune.type === "none",
        agreedRemovals: prune.type === "agreed" ? { resources: [...prune.resources] } : undefined,
      });
      return rolloutId;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (error.violations.length > 0) throw explainViolations(bundle, error);
      // Where nothing listens from the start, the address is wrong rather than the answer lost.
      if (!error.passing || sends === MAX_SENDS || (!error.connected && sends === 1)) throw error;
      await pause(SEND_PAUSE_MS * sends, context.signal);
    }
  }
}
