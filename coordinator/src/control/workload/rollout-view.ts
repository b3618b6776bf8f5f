import type { RolloutAttempt } from "@forage/proto/forage/store/v1/store";
import type { PodEntry } from "../../state/entries.ts";
import { standingOf } from "./attempt.ts";
import { currentPods } from "./current-pods.ts";
import type { Hold } from "./hold.ts";
import { describeAhead, imagesAhead } from "./images-ahead.ts";
import { waitsForPromotion } from "./judge.ts";
import type { WorkloadInput } from "./workload-input.ts";

/** How the try to run what a container service asks for stands, for those who tell of it. */
export interface RolloutView {
  /** Undefined: it has yet to begin. */
  readonly attempt: RolloutAttempt | undefined;
  readonly hold: Hold;
  /** A canary has all its pods. */
  readonly waitsForPromotion: boolean;
  /** Why older pods have yet to give way; empty: they need not wait. */
  readonly imagesAhead: string;
  /** What it would be rolled back to; 0: nothing. */
  readonly goodRevision: number;
}

/** Undefined when the resource is no container service, or is being deleted. */
export function rolloutView(input: WorkloadInput): RolloutView | undefined {
  const { resource, pods } = input;
  if (resource?.workload === undefined || resource.wanted === undefined || resource.record.deleting)
    return undefined;
  const standing = standingOf(input, resource, resource.wanted);
  const staying = pods.filter((pod) => pod.record.stoppingSince === undefined);
  const { workload } = resource;
  const ahead = imagesAhead({ workload, staying, stopping: [], hold: standing.hold }, input);
  const current = (): readonly PodEntry[] => currentPods(workload, staying);
  const look = { standing, workload, staying, stopping: [], current, ahead: () => ahead };
  return {
    attempt: standing.start === undefined ? standing.attempt : undefined,
    hold: standing.hold,
    waitsForPromotion: waitsForPromotion(look, input),
    imagesAhead: describeAhead(ahead),
    goodRevision: standing.beforeNumber,
  };
}
