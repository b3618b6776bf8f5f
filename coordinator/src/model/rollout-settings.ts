import { JOB_ANNOTATIONS } from "./job-annotations.ts";
import type { Labels } from "./labels.ts";

/**
 * Annotations of pod_config that control rollouts. They are not part of the pod template, so that a change creates no new
 * pods.
 */
export const ROLLOUT_ANNOTATIONS = {
  changeCause: "forage.dev/change-cause",
  minReadySeconds: "forage.dev/min-ready-seconds",
  progressDeadline: "forage.dev/progress-deadline",
  rollback: "forage.dev/rollback",
  canary: "forage.dev/canary",
  disruptionBudget: "forage.dev/disruption-budget",
} as const;

/** The annotation that a restart adds to the pod template, so that pods are replaced although their content is the same. */
export const RESTARTED_AT_ANNOTATION = "forage.dev/restarted-at";

export interface RolloutSettings {
  /** The reason of the change, for people. Empty: none was given. */
  readonly changeCause: string;
  /** The minimum ready time. Undefined: as configured. */
  readonly minReadyMs: number | undefined;
  /** The progress deadline. Undefined: as configured. */
  readonly deadlineMs: number | undefined;
  /** Whether a failing revision is rolled back to the last good one. */
  readonly rollback: boolean;
  /** The number or percentage of new pods before a promotion. Undefined: no canary. */
  readonly canary: string | undefined;
  /** The number or percentage of pods that drains may make unavailable. Undefined: as many as updates. */
  readonly disruptionBudget: string | undefined;
}

/** Returns the settings of annotations. An invalid value counts as absent; apply rejects it. */
export function settingsOf(annotations: Labels = {}): RolloutSettings {
  const given = (name: string): string | undefined => {
    const value = annotations[name];
    return value === undefined || settingProblem(name, value) !== undefined ? undefined : value;
  };
  const minReady = given(ROLLOUT_ANNOTATIONS.minReadySeconds);
  const deadline = given(ROLLOUT_ANNOTATIONS.progressDeadline);
  return {
    changeCause: given(ROLLOUT_ANNOTATIONS.changeCause) ?? "",
    minReadyMs: minReady === undefined ? undefined : Number(minReady) * 1000,
    deadlineMs: deadline === undefined ? undefined : durationMs(deadline),
    rollback: given(ROLLOUT_ANNOTATIONS.rollback) !== "off",
    canary: given(ROLLOUT_ANNOTATIONS.canary),
    disruptionBudget: given(ROLLOUT_ANNOTATIONS.disruptionBudget),
  };
}

/**
 * Returns what is wrong with the annotation's value. Undefined: it is valid, or the annotation is not a rollout setting.
 */
export function settingProblem(name: string, value: string): string | undefined {
  switch (name) {
    case ROLLOUT_ANNOTATIONS.changeCause:
      return value.length > MAX_CAUSE_LENGTH ? `must be at most ${MAX_CAUSE_LENGTH} characters` : undefined;
    case ROLLOUT_ANNOTATIONS.minReadySeconds:
      return /^\d{1,5}$/.test(value) && Number(value) <= MAX_MIN_READY_SECONDS
        ? undefined
        : `must be a number of seconds from 0 to ${MAX_MIN_READY_SECONDS}`;
    case ROLLOUT_ANNOTATIONS.progressDeadline: {
      const ms = durationMs(value);
      return ms !== undefined && ms >= 1000 && ms <= MAX_DEADLINE_MS
        ? undefined
        : 'must be a duration from 1s to 24h, such as "90s", "10m" or "1h30m"';
    }
    case ROLLOUT_ANNOTATIONS.rollback:
      return value === "on" || value === "off" ? undefined : 'must be "on" or "off"';
    case ROLLOUT_ANNOTATIONS.canary:
      return /^[1-9]\d{0,4}$|^([1-9]\d?|100)%$/.test(value)
        ? undefined
        : 'must be a number of pods such as "1" or a percentage of the replicas such as "10%"';
    case ROLLOUT_ANNOTATIONS.disruptionBudget:
      return /^(0|[1-9]\d{0,4})$|^(\d|[1-9]\d|100)%$/.test(value)
        ? undefined
        : 'must be the number or percentage of pods that drains may make unavailable, such as "1" or "25%"';
    default:
      return undefined;
  }
}

/** Returns the annotations that are part of the pod template. */
export function podAnnotations(
  annotations: Readonly<Record<string, string>>,
  restartedAt: string | undefined,
): Record<string, string> {
  const settings = new Set<string>([
    ...Object.values(ROLLOUT_ANNOTATIONS),
    ...Object.values(JOB_ANNOTATIONS),
  ]);
  const kept = Object.entries(annotations).filter(([name]) => !settings.has(name));
  return {
    ...Object.fromEntries(kept),
    ...(restartedAt !== undefined && { [RESTARTED_AT_ANNOTATION]: restartedAt }),
  };
}

/** The limit of a change cause in characters, to keep lists of revisions readable. */
const MAX_CAUSE_LENGTH = 1_000;
const MAX_MIN_READY_SECONDS = 3_600;
const MAX_DEADLINE_MS = 24 * 3_600_000;

function durationMs(text: string): number | undefined {
  const [whole, hours = 0, minutes = 0, seconds = 0] =
    /^(?:(\d{1,3})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?$/.exec(text) ?? [];
  if (whole === undefined || whole === "") return undefined;
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}
