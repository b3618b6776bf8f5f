import { type Coordinator, forest, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import type { Context } from "../context.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { explainViolations } from "../manifest/explain-violations.ts";
import type { Pruning } from "./prune.ts";
import { sendAgain } from "./send-again.ts";

/**
 * Applies a bundle, and returns the id of the rollout. `prune` decides whether resources with the
 * bundle's labels that it does not name are removed. Because of the apply id, the bundle can safely
 * be sent again after a lost answer.
 */
export async function sendBundle(
  context: Context,
  coordinator: Coordinator,
  bundle: Bundle,
  prune: Pruning,
): Promise<string> {
  const applyId = bundle.request.applyId === "" ? context.world.randomId() : bundle.request.applyId;
  const request = { ...bundle.request, applyId };
  const { namespace } = request;
  // A bundle without labels removes nothing.
  const free = prune.type === "all" || Object.keys(request.labels).length === 0;
  const agreedRemovals = prune.type === "agreed" ? { resources: [...prune.resources] } : undefined;
  const keepOthers = prune.type === "none";
  try {
    const { rolloutId } = await sendAgain(context, () =>
      free
        ? coordinator.call(forest.applyResources, request)
        : coordinator.call(operator.apply, { namespace, bundle: request, keepOthers, agreedRemovals }),
    );
    return rolloutId;
  } catch (error) {
    throw error instanceof CallError && error.violations.length > 0
      ? explainViolations(bundle, error)
      : error;
  }
}
