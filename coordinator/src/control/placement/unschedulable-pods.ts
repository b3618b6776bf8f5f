import type { TimeReading } from "../../acting-time/acting-time.ts";
import type { PodEntry } from "../../state/entries.ts";

export interface UnschedulablePod {
  readonly summary: string;
  readonly sinceMs: number;
}

/** Returns the reason with its time moved forward by the time in which the coordinator could not act. */
export function waitingSince(
  waiting: UnschedulablePod | undefined,
  { since }: Pick<TimeReading, "since">,
): UnschedulablePod | undefined {
  return waiting && { ...waiting, sinceMs: since(waiting.sinceMs) };
}

/** Holds the reasons why pods are unschedulable. They describe the current state and are not stored. */
export class UnschedulablePods {
  readonly #pods = new Map<string, UnschedulablePod>();
  readonly #nowMs: () => number;
  readonly #onChange: (pod: PodEntry, summary: string) => void;

  constructor(options: {
    readonly nowMs: () => number;
    readonly onChange: (pod: PodEntry, summary: string) => void;
  }) {
    this.#nowMs = options.nowMs;
    this.#onChange = options.onChange;
  }

  get(uid: string): UnschedulablePod | undefined {
    return this.#pods.get(uid);
  }

  set(pod: PodEntry, summary: string): void {
    const before = this.#pods.get(pod.record.uid);
    if (before?.summary === summary) return;
    this.#pods.set(pod.record.uid, { summary, sinceMs: before?.sinceMs ?? this.#nowMs() });
    this.#onChange(pod, summary);
  }

  /** Restarts the pod's waiting time. */
  restart(uid: string): void {
    const known = this.#pods.get(uid);
    if (known !== undefined) this.#pods.set(uid, { ...known, sinceMs: this.#nowMs() });
  }

  clear(uid: string): void {
    this.#pods.delete(uid);
  }
}
