import type { PodEntry } from "../../state/entries.ts";

export interface UnschedulablePod {
  readonly summary: string;
  readonly sinceMs: number;
}

/** Holds the reasons why pods are unschedulable. They describe the present state and are not stored. */
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

  /** It has waited for nothing until now. */
  restart(uid: string): void {
    const known = this.#pods.get(uid);
    if (known !== undefined) this.#pods.set(uid, { ...known, sinceMs: this.#nowMs() });
  }

  clear(uid: string): void {
    this.#pods.delete(uid);
  }
}
