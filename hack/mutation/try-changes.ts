import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeChange } from "./find-changes.ts";
import type { PlacedChange } from "./sample-changes.ts";

/**
 * `noticed`: the types or a test failed. `survived`: all tests that load the module passed. `unfinished`: all tests
 * that ran within the time passed, but others remain.
 */
export type Verdict =
  | { readonly type: "noticed"; readonly by: string }
  | { readonly type: "survived" | "unfinished"; readonly files: number };

export interface Trial {
  readonly change: PlacedChange;
  readonly verdict: Verdict;
  readonly durationMs: number;
}

export interface TrialOptions {
  /** The root of a checkout in which sources are changed. */
  readonly checkout: string;
  /** Returns the test files that load the module, nearest first. */
  readonly testsOf: (path: string) => readonly string[];
  /** Returns whether the test file passes in the checkout within the time. Ends it when the signal is aborted. */
  readonly passes: (test: string, signal: AbortSignal) => Promise<boolean>;
  /** Returns whether the sources of the checkout have no type errors. */
  readonly typesAreRight: () => Promise<boolean>;
  /** The number of test files that run at a time. */
  readonly concurrency: number;
  /** The time after which no further test file of a change starts. */
  readonly limitMs: number;
  readonly monotonicMs: () => number;
}

/** Applies one change after another in the checkout, runs the tests and reverts the change. */
export class ChangeTrials {
  readonly #options: TrialOptions;
  /** Whether each test file passes without a change. */
  readonly #sound = new Map<string, boolean>();

  constructor(options: TrialOptions) {
    this.#options = options;
  }

  async try(change: PlacedChange): Promise<Trial> {
    const { checkout, monotonicMs } = this.#options;
    const startMs = monotonicMs();
    const file = join(checkout, change.path);
    const source = readFileSync(file, "utf8");
    const changed = makeChange(source, change);
    const undo = (): void => writeFileSync(file, source);
    const make = (): void => writeFileSync(file, changed);
    try {
      const verdict = await this.#judge(change.path, { make, undo }, startMs);
      return { change, verdict, durationMs: monotonicMs() - startMs };
    } finally {
      undo();
    }
  }

  async #judge(path: string, change: { make(): void; undo(): void }, startMs: number): Promise<Verdict> {
    const { testsOf, typesAreRight, limitMs, monotonicMs } = this.#options;
    const tests = new Set(testsOf(path).filter((test) => this.#sound.get(test) !== false));
    const passed = new Set<string>();
    const isOver = (): boolean => monotonicMs() - startMs >= limitMs;
    for (;;) {
      change.make();
      const failed = await this.#runUntilFailure(
        [...tests].filter((test) => !passed.has(test)),
        passed,
        isOver,
      );
      if (failed === undefined) break;
      change.undo();
      if (await this.#isSound(failed)) return { type: "noticed", by: failed };
      tests.delete(failed);
    }
    if (!(await typesAreRight())) return { type: "noticed", by: "types" };
    return { type: passed.size === tests.size ? "survived" : "unfinished", files: passed.size };
  }

  /**
   * Runs test files in order, several at a time, and adds those that pass. If one fails, ends the others and returns
   * it.
   */
  async #runUntilFailure(
    tests: readonly string[],
    passed: Set<string>,
    isOver: () => boolean,
  ): Promise<string | undefined> {
    const { passes, concurrency } = this.#options;
    const left = tests.values();
    const stop = new AbortController();
    let failed: string | undefined;
    const worker = async (): Promise<void> => {
      while (!stop.signal.aborted && !isOver()) {
        const { value: test, done } = left.next();
        if (done) return;
        const isPassed = await passes(test, stop.signal);
        if (stop.signal.aborted) return;
        if (isPassed) passed.add(test);
        else {
          failed = test;
          stop.abort();
        }
      }
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
    return failed;
  }

  async #isSound(test: string): Promise<boolean> {
    const known = this.#sound.get(test);
    if (known !== undefined) return known;
    const sound = await this.#options.passes(test, new AbortController().signal);
    this.#sound.set(test, sound);
    return sound;
  }
}
