import type { Socket } from "node:net";
import type { Offenders } from "./offenders.ts";

export interface PacedStartsOptions {
  readonly offenders: Offenders;
  readonly monotonicMs: () => number;
  /** Calls `run` once after a delay. Returns a function that cancels the call. */
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Starts a connection. */
  readonly start: (socket: Socket) => void;
}

/**
 * Starts accepted connections, those of paced addresses one by one. Sockets must be paused until they start. The number
 * of waiting connections is bounded by the listener's limit of connections.
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

  /** Closes the waiting connections. */
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
