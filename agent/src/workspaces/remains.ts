import { type BackOff, backOffMs } from "@forage/common/back-off";
import { withLinkedSignal } from "@forage/common/link-signals";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import { type Clock, pause } from "../clock.ts";

export interface RemainsOptions {
  readonly clock: Clock;
  /** Returns the instances that were disposed of and still have files on the disk. */
  readonly list: () => Promise<readonly string[]>;
  /** Deletes the files of one of these instances. */
  readonly remove: (id: string, signal: AbortSignal) => Promise<void>;
  /** Called when all files of the instance are deleted. */
  readonly removed: (id: string) => void;
  readonly log: Pick<Log, "info" | "warn">;
}

const RETRY: BackOff = { baseMs: 1_000, capMs: 60_000 };
// A new disposal ends the wait. The limit bounds the effect of a missed wake-up.
const IDLE_MS = 60_000;

/**
 * Deletes the files of workspaces that were disposed of, one workspace at a time. It keeps no state: the directory on
 * disk shows what is left, even after a crash.
 */
export class Remains {
  readonly #options: RemainsOptions;
  #wake = new AbortController();

  constructor(options: RemainsOptions) {
    this.#options = options;
  }

  /** Starts a round because another workspace was disposed of. */
  wake(): void {
    this.#wake.abort();
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      this.#wake = new AbortController();
      failures = (await this.#removeAll(signal)) ? 0 : failures + 1;
      const waitMs = failures === 0 ? IDLE_MS : backOffMs(failures, RETRY);
      await withLinkedSignal([signal, this.#wake.signal], (either) =>
        pause(this.#options.clock, waitMs, either),
      );
    }
  }

  /**
   * Deletes all remains and returns whether nothing is left. Files that can't be deleted do not block those of other
   * workspaces.
   */
  async #removeAll(signal: AbortSignal): Promise<boolean> {
    const { list, remove, removed, log } = this.#options;
    let failed = false;
    const failedWith = (error: unknown, fields: object): void => {
      failed = true;
      if (!signal.aborted)
        log.warn({ event: "workspace-remains-not-deleted", ...fields, reason: messageOf(error) });
    };
    try {
      for (const workspace of await list()) {
        if (signal.aborted) return false;
        try {
          await remove(workspace, signal);
          removed(workspace);
          log.info({ event: "workspace-remains-deleted", workspace });
        } catch (error) {
          failedWith(error, { workspace });
        }
      }
    } catch (error) {
      failedWith(error, {});
    }
    return !failed;
  }
}
