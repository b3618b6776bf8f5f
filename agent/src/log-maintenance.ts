import type { Clock } from "./clock.ts";
import type { LoggedContainer, LogRescue } from "./logs/log-rescue.ts";

export interface LogMaintenanceOptions {
  readonly clock: Clock;
  readonly rescue: Pick<LogRescue, "run">;
  /** Returns the running containers. */
  readonly containers: () => readonly LoggedContainer[];
  /** Reports whether the disk is currently nearly full. */
  readonly pressed: () => boolean;
  readonly onError: (error: unknown) => void;
}

// By then a disk that was full may have room, or another try is due. A check reads some files of each process.
const CHECK_INTERVAL_MS = 30_000;

/** Rescues containers whose logs could not be written for a while. Does nothing unless the disk was full. */
export class LogMaintenance {
  readonly #options: LogMaintenanceOptions;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: LogMaintenanceOptions) {
    this.#options = options;
  }

  /** Must be called when the disk is full or may have been full. */
  suspect(): void {
    if (!this.#closed)
      this.#cancel ??= this.#options.clock.schedule(CHECK_INTERVAL_MS, () => void this.#check());
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  async #check(): Promise<void> {
    const { rescue, containers, pressed, onError } = this.#options;
    this.#cancel = undefined;
    await rescue.run(containers()).catch(onError);
    if (pressed()) this.suspect();
  }
}
