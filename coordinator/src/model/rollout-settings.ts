import { jobAnnotations } from "./job-annotations.ts";
import type { Labels } from "./labels.ts";

/** Annotations of a pod_config that say how its workload is rolled out. They aren't handed to pods: changing one makes no new pods. */
export const rolloutAnnotations = {
  changeCause: "forage.dev/change-cause",
  minReadySeconds: "forage.dev/min-ready-seconds",
  progressDeadline: "forage.dev/progress-deadline",
  rollback: "forage.dev/rollback",
  canary: "forage.dev/canary",
  disruptionBudget: "forage.dev/disruption-budget",
} as const;

/** Added to a pod template so that pods are replaced although their content is the same. */
export const restartedAtAnnotation = "forage.dev/restarted-at";

export interface RolloutSettings {
  /** Empty: none was given. */
  readonly changeCause: string;
  /** Undefined: as configured. */
  readonly minReadyMs: number | undefined;
  /** Undefined: as configured. */
  readonly deadlineMs: number | undefined;
  /** Whether a version that fails is replaced by the last good one. */
  readonly rollback: boolean;
  /** The number or percentage of new pods until an operator promotes them; undefined: all at once. */
  readonly canary: string | undefined;
  /** The number or percentage of pods that drains may leave missing; undefined: as many as updates. */
  readonly disruptionBudget: string | undefined;
}

/** Reads the settings. An invalid value counts as absent; apply refuses it. */
export function settingsOf(annotations: Labels = {}): RolloutSettings {
  const given = (name: string): string | undefined => {
    const value = annotations[name];
    return value === undefined || settingProblem(name, value) !== undefined ? undefined : value;
  };
  const minReady = given(rolloutAnnotations.minReadySeconds);
  const deadline = given(rolloutAnnotations.progressDeadline);
  return {
    changeCause: given(rolloutAnnotations.changeCause) ?? "",
    minReadyMs: minReady === undefined ? undefined : Number(minReady) * 1000,
    deadlineMs: deadline === undefined ? undefined : durationMs(deadline),
    rollback: given(rolloutAnnotations.rollback) !== "off",
    canary: given(rolloutAnnotations.canary),
    disruptionBudget: given(rolloutAnnotations.disruptionBudget),
  };
}

/** Returns the fault in the annotation's value. Undefined if there is none, or if the annotation is not a rollout setting. */
export function settingProblem(name: string, value: string): string | undefined {
  switch (name) {
    case rolloutAnnotations.changeCause:
      return value.length > maxCauseLength ? `must be at most ${maxCauseLength} characters` : undefined;
    case rolloutAnnotations.minReadySeconds:
      return /^\d{1,5}$/.test(value) && Number(value) <= maxMinReadySeconds
        ? undefined
        : `must be a number of seconds from 0 to ${maxMinReadySeconds}`;
    case rolloutAnnotations.progressDeadline: {
      const ms = durationMs(value);
      return ms !== undefined && ms >= 1000 && ms <= maxDeadlineMs
        ? undefined
        : 'must be a duration from 1s to 24h, such as "90s", "10m" or "1h30m"';
    }
    case rolloutAnnotations.rollback:
      return value === "on" || value === "off" ? undefined : 'must be "on" or "off"';
    case rolloutAnnotations.canary:
      return /^[1-9]\d{0,4}$|^([1-9]\d?|100)%$/.test(value)
        ? undefined
        : 'must be a number of pods such as "1" or a percentage of the replicas such as "10%"';
    case rolloutAnnotations.disruptionBudget:
      return /^(0|[1-9]\d{0,4})$|^(\d|[1-9]\d|100)%$/.test(value)
        ? undefined
        : 'must be how many pods drains may leave missing, such as "1" or "25%"';
    default:
      return undefined;
  }
}

/** The annotations that pods get. */
export function podAnnotations(
  annotations: Readonly<Record<string, string>>,
  restartedAt: string | undefined,
): Record<string, string> {
  const settings = new Set<string>([...Object.values(rolloutAnnotations), ...Object.values(jobAnnotations)]);
  const kept = Object.entries(annotations).filter(([name]) => !settings.has(name));
  return {
    ...Object.fromEntries(kept),
    ...(restartedAt !== undefined && { [restartedAtAnnotation]: restartedAt }),
  };
}

/** Lists of revisions stay readable. */
const maxCauseLength = 1_000;
const maxMinReadySeconds = 3_600;
const maxDeadlineMs = 24 * 3_600_000;

function durationMs(text: string): number | undefined {
  const [whole, hours = 0, minutes = 0, seconds = 0] =
    /^(?:(\d{1,3})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?$/.exec(text) ?? [];
  if (whole === undefined || whole === "") return undefined;
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}
