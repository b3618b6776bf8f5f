import type { Logger } from "pino";
import type { Leader } from "./store/index.ts";

/** The time for which a coordinator waits because another one leads. */
export class Standby {
  readonly #log: Logger;
  readonly #onStatus: (line: string) => void;
  #holder: string | undefined;

  /** `onStatus` is called once, with a line for the service manager, when the waiting begins. */
  constructor(log: Logger, onStatus: (line: string) => void) {
    this.#log = log;
    this.#onStatus = onStatus;
  }

  get began(): boolean {
    return this.#holder !== undefined;
  }

  /** Logs each leader once. */
  observe({ holder, name }: Leader): void {
    if (holder === this.#holder) return;
    const isFirst = this.#holder === undefined;
    this.#holder = holder;
    this.#log.info({ event: "standing-by", leader: name }, "another coordinator leads");
    if (isFirst) this.#onStatus("standing by: another coordinator leads");
  }
}
