import { join } from "node:path";
import type { Clock } from "../clock.ts";
import { hostFiles, type JournalFiles } from "../journal/journal-files.ts";

/**
 * The result of loading at the start. "missing" also applies to a host that never had such a file, because the two
 * can't be distinguished.
 */
export type LoadedState = "sound" | "missing" | "damaged";

export interface StateFileOptions {
  /** The directory of the file. Created if missing. */
  readonly dir: string;
  readonly name: string;
  /** Returns the bytes of the current state. Called when it is written. */
  readonly encode: () => Uint8Array | Promise<Uint8Array>;
  /**
   * The delay of a write, which coalesces changes. Changes that a crash loses arrive again with the next connection.
   */
  readonly writeAfterMs: number;
  readonly clock: Clock;
  /** Called when a write has failed. The next change repeats it. */
  readonly onError: (error: unknown) => void;
  /** Default: the host's disk. */
  readonly files?: StateFiles | undefined;
}

export type StateFiles = Pick<JournalFiles, "makeDirectory" | "read" | "write">;

/** Keeps the coordinator's last state of a topic on disk, so that the host works without the coordinator. */
export class StateFile {
  readonly #options: StateFileOptions;
  #cancelWrite: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: StateFileOptions) {
    this.#options = options;
  }

  get path(): string {
    return join(this.#options.dir, this.#options.name);
  }

  /** Loads the state. An unreadable one counts as absent, and the coordinator sends it again. */
  static async load<State>(
    { dir, name, files = hostFiles }: Pick<StateFileOptions, "dir" | "name" | "files">,
    decode: (bytes: Buffer) => State,
    onDamage: (path: string, error: unknown) => void,
  ): Promise<{ readonly loaded: LoadedState; readonly state?: State }> {
    const path = join(dir, name);
    try {
      await files.makeDirectory(dir);
      return { loaded: "sound", state: decode(await files.read(path)) };
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return { loaded: "missing" };
      onDamage(path, error);
      return { loaded: "damaged" };
    }
  }

  /** Schedules a write of the current state. */
  changed(): void {
    const { clock, writeAfterMs } = this.#options;
    this.#cancelWrite ??= clock.schedule(writeAfterMs, () => this.#write());
  }

  /** Writes pending changes. */
  async close(): Promise<void> {
    if (this.#cancelWrite !== undefined) this.#write();
    await this.#writing;
  }

  #write(): void {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    const { dir, name, encode, files = hostFiles, onError } = this.#options;
    this.#writing = this.#writing
      .then(async () => files.write(dir, [{ name, bytes: await encode() }]))
      .catch(onError);
  }
}
