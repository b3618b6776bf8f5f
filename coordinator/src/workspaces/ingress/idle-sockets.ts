import type { Clock } from "@forage/common/clock";

/** The part of a socket that is needed to find idle connections. */
export interface CountedSocket {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  once(event: "close", listener: () => void): unknown;
  destroy(): void;
}

/** The idle limit, as long as that of gateways: WebSockets may be idle for a long time. */
const IDLE_LIMIT_MS = 3_600_000;
const CHECK_INTERVAL_MS = 60_000;

interface Traffic {
  bytes: number;
  sinceMs: number;
}

/**
 * Tracks open connections, and closes those without any traffic for an hour: a visitor that reads
 * no response would occupy its slot for ever.
 */
export class IdleSockets {
  readonly #clock: Pick<Clock, "monotonicMs" | "schedule">;
  readonly #open = new Map<CountedSocket, Traffic>();
  #cancel: () => void;

  constructor(clock: Pick<Clock, "monotonicMs" | "schedule">) {
    this.#clock = clock;
    this.#cancel = clock.schedule(CHECK_INTERVAL_MS, () => this.#check());
  }

  add(socket: CountedSocket): void {
    this.#open.set(socket, { bytes: bytesOf(socket), sinceMs: this.#clock.monotonicMs() });
    socket.once("close", () => this.#open.delete(socket));
  }

  /** Closes all connections and stops the checks. */
  close(): void {
    this.#cancel();
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #check(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [socket, traffic] of this.#open) {
      const bytes = bytesOf(socket);
      if (bytes !== traffic.bytes) {
        traffic.bytes = bytes;
        traffic.sinceMs = nowMs;
      } else if (nowMs - traffic.sinceMs >= IDLE_LIMIT_MS) socket.destroy();
    }
    this.#cancel = this.#clock.schedule(CHECK_INTERVAL_MS, () => this.#check());
  }
}

function bytesOf({ bytesRead, bytesWritten }: CountedSocket): number {
  return bytesRead + bytesWritten;
}
