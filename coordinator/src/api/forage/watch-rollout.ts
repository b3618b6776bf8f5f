import type { ForageServiceService, RolloutEvent } from "@forage/proto/forest/v1/forage";
import { isTerminal } from "../../control/rollout/progress.ts";
import type { ResourceProgress } from "../../control/rollout/progress-input.ts";
import { CoordinatorError } from "../../errors.ts";
import { assertNamespace } from "../../rpc/access.ts";
import type { Handlers } from "../../rpc/serve.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Signal } from "../../state/signal.ts";

export interface RolloutSource {
  progress(id: string): readonly ResourceProgress[] | undefined;
  watch(id: string, listener: () => void): () => void;
}

/** Returns the handler of WatchRollout. */
export function watchRolloutHandler(
  state: ClusterView,
  rollouts: RolloutSource,
): Handlers<typeof ForageServiceService>["watchRollout"] {
  return async function* ({ rolloutId }, context) {
    const rollout = state.rollout(rolloutId);
    if (rollout === undefined) throw new CoordinatorError("NOT_FOUND", `there is no rollout "${rolloutId}"`);
    assertNamespace(context.caller, context.method, rollout.record.namespace);
    yield* watchRollout(rolloutId, rollouts, context.signal);
  };
}

/**
 * Yields the state of every resource, and then each change until all states are final. A slow reader receives the newest
 * state of a resource, without intermediate ones.
 */
export async function* watchRollout(
  rolloutId: string,
  source: RolloutSource,
  signal: AbortSignal,
): AsyncGenerator<RolloutEvent> {
  const changed = new Signal();
  const stop = source.watch(rolloutId, () => changed.raise());
  try {
    const sent: (ResourceProgress | undefined)[] = [];
    while (!signal.aborted) {
      const progress = source.progress(rolloutId);
      if (progress === undefined) throw unknownRollout(rolloutId);
      for (const [index, current] of progress.entries()) {
        const before = sent[index];
        if (before?.status === current.status && before.message === current.message) continue;
        sent[index] = current;
        yield eventOf(current);
      }
      if (progress.every((p) => isTerminal(p.status))) return;
      await changed.wait(signal);
    }
  } finally {
    stop();
  }
}

function eventOf({ kind, name, status, message }: ResourceProgress): RolloutEvent {
  return { resourceKind: kind, resourceName: name, status, message };
}

function unknownRollout(id: string): CoordinatorError {
  return new CoordinatorError(
    "NOT_FOUND",
    `there is no rollout "${id}"; finished ones are kept for a limited time`,
  );
}
