import { readFile, rename, writeFile } from "node:fs/promises";
import { ADDRESSES_MAX, type CoordinatorAddress, parseAddress, textOf } from "./coordinator-address.ts";

const TEXT_MAX_LENGTH = 8_192;

export interface KnownCoordinatorsOptions {
  readonly path: string;
  readonly onProblem: (error: unknown) => void;
}

/**
 * The file with the addresses that coordinators have reported, one on each line. Without it the agent uses the
 * configured ones.
 */
export class KnownCoordinators {
  /** The addresses read from the file. */
  readonly learnt: readonly CoordinatorAddress[];
  readonly #options: KnownCoordinatorsOptions;
  #saving: Promise<void> = Promise.resolve();

  static async open(options: KnownCoordinatorsOptions): Promise<KnownCoordinators> {
    const text = await readFile(options.path, "utf8").catch(() => "");
    const lines = text.slice(0, TEXT_MAX_LENGTH).split("\n").slice(0, ADDRESSES_MAX);
    return new KnownCoordinators(
      options,
      lines.flatMap((line) => parseAddress(line) ?? []),
    );
  }

  private constructor(options: KnownCoordinatorsOptions, learnt: readonly CoordinatorAddress[]) {
    this.#options = options;
    this.learnt = learnt;
  }

  /** Starts to replace the file after the current write. */
  save(learnt: readonly CoordinatorAddress[]): void {
    const { path, onProblem } = this.#options;
    const text = learnt.map((it) => `${textOf(it)}\n`).join("");
    this.#saving = this.#saving
      .then(() => writeFile(`${path}.next`, text, { mode: 0o600 }))
      .then(() => rename(`${path}.next`, path))
      .catch(onProblem);
  }

  /** Resolves when the file is written. */
  saved(): Promise<void> {
    return this.#saving;
  }
}
