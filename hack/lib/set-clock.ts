import { globSync, renameSync, writeFileSync } from "node:fs";
import { SetupError } from "./setup-error.ts";

/** The library of libfaketime for programs with threads, in Debian's directory of the machine's architecture. */
const LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1";

/**
 * The wall clock of a program under test, which can be set while the program runs. The monotonic clock is the
 * machine's.
 */
export class SetClock {
  readonly #path: string;

  /** @param path a file for this clock only. */
  constructor(path: string) {
    this.#path = path;
    this.set(0);
  }

  /** Environment variables that start a program with this clock. */
  get environment(): Readonly<Record<string, string>> {
    return {
      ...faketime(),
      FAKETIME_TIMESTAMP_FILE: this.#path,
      // Without this, a change takes effect only ten seconds later.
      FAKETIME_NO_CACHE: "1",
    };
  }

  /** Sets the clock to this many seconds before or after the machine's. */
  set(offsetSeconds: number): void {
    const sign = offsetSeconds < 0 ? "" : "+";
    const next = `${this.#path}.next`;
    writeFileSync(next, `${sign}${offsetSeconds}`);
    // The rename is atomic, because the program may read the file at any moment.
    renameSync(next, this.#path);
  }
}

/**
 * Returns environment variables that start a program whose wall clock is this many seconds before or after the
 * machine's.
 */
export function wrongClock(offsetSeconds: number): Readonly<Record<string, string>> {
  return { ...faketime(), FAKETIME: `${offsetSeconds < 0 ? "" : "+"}${offsetSeconds}` };
}

function faketime(): Readonly<Record<string, string>> {
  const library = findFaketime();
  if (library === undefined)
    throw new SetupError(
      "MISSING_TOOL",
      `there is no ${LIBRARY}`,
      "install the package faketime, or run hack/test, which does",
    );
  return { LD_PRELOAD: library, FAKETIME_DONT_FAKE_MONOTONIC: "1", NO_FAKE_STAT: "1" };
}

export function findFaketime(): string | undefined {
  return globSync(LIBRARY)[0];
}
