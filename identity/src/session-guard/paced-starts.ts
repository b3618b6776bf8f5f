import type { Socket } from "node:net";
import type { Offenders } from "./offenders.ts";

export interface PacedStartsOptions {
  readonly offenders: Offenders;
  readonly monotonicMs: () => number;
  /** Calls back once after a time; returns how to cancel. */
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Takes a connection that may start. */
  readonly start: (socket: Socket) => void;
}

/**
 * Starts accepted connections, those of paced addresses one by one. The listener's own limit of connections bounds how many wait,
 * and sockets must be paused until they start.
 */
export class PacedStarts {
  readonly #options: PacedStartsOptions;
  readonly #waiting = new Set<Socket>();
  #cancel: (() => void) | undefined;

  constructor(options: PacedStartsOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  add(socket: Socket): void {
    if (this.#tryStart(socket)) return;
    this.#waiting.add(socket);
    socket.once("close", () => this.#waiting.delete(socket));
    this.#retryLater();
  }

  /** Closes the connections that wait. */
  close(): void {
    this.#cancel?.();
    for (const socket of this.#waiting) socket.destroy();
    this.#waiting.clear();
  }

  #tryStart(socket: Socket): boolean {
    const { offenders, monotonicMs, start } = this.#options;
    if (!offenders.tryStart(socket.remoteAddress ?? "", monotonicMs())) return false;
    this.#waiting.delete(socket);
    start(socket);
    return true;
  }

  #retryLater(): void {
    this.#cancel ??= this.#options.schedule(this.#options.offenders.retryMs, () => {
      this.#cancel = undefined;
      for (const socket of this.#waiting) this.#tryStart(socket);
      if (this.#waiting.size > 0) this.#retryLater();
    });
  }
}
