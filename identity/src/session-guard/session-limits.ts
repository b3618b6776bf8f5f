import { type BudgetRate, RateBudget } from "./rate-budget.ts";

/**
 * Streams that a peer opens and resets at once. Each costs the server as much as an answered call (0.1 ms of CPU) and the peer
 * almost nothing. The rate is what nghttp2 takes for normal: a client that cancels more than this for long is broken or hostile.
 * The burst is a proxy that drops all its short look-ups together; 30 ms of CPU.
 */
export const RESETS: BudgetRate = { burst: 256, perSecond: 33 };
/**
 * The budget of a connection with accepted credentials: nodes and gateways relay streams that their own clients cancel. It is
 * below the 1,000 at which nghttp2 closes a connection by itself, so that the peer learns why.
 */
export const PROVEN_RESETS: BudgetRate = { burst: 900, perSecond: 33 };
/** The budget of a connection from an address that was cut before. */
export const PACED_RESETS: BudgetRate = { burst: 32, perSecond: 33 };
/** A stream that lived longer is a normal one that the client cancels: proxies hold theirs for minutes. */
export const QUICK_RESET_MS = 250;

/** Clients send a PING every few seconds, and those that estimate bandwidth one for each burst of data. */
const PINGS: BudgetRate = { burst: 100, perSecond: 10 };
/** Clients send one, or a few while they tune their windows. Each can change the window of every stream. */
const SETTINGS: BudgetRate = { burst: 20, perSecond: 1 };
/** Bytes that neither carry data nor are explained by what both sides did. */
const OVERHEAD: BudgetRate = { burst: 256 * 1024, perSecond: 16 * 1024 };
/** A stream's headers and trailers. */
const HEADER_BYTES = 16 * 1024;
/** The smallest message takes 5 bytes, and the head of its frame 9 more. */
const BYTES_PER_DATA_BYTE = 3;
/** The size of a PING frame and of its answer. */
const PING_BYTES = 17;
/** The size of a SETTINGS frame's answer. */
const ACK_BYTES = 9;

/** The bytes that went over a connection. */
export interface Traffic {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** Counts the frames of a connection that cost this side and carry no data. Each method returns false when it is too much. */
export class SessionLimits {
  readonly #pings: RateBudget;
  readonly #settings: RateBudget;
  readonly #overhead: RateBudget;
  /** Bytes that were written as answers to PING and SETTINGS frames: they give the peer no reason for further frames. */
  #answeredBytes = 0;
  #writtenAtPing = 0;
  /** Bytes that may be received by now. */
  #explained = 0;
  #seenRead = 0;
  #seenWritten = 0;

  constructor(nowMs: number) {
    this.#pings = new RateBudget(PINGS, nowMs);
    this.#settings = new RateBudget(SETTINGS, nowMs);
    this.#overhead = new RateBudget(OVERHEAD, nowMs);
  }

  /** Counts a PING, unless something else was written since the last one: then it may measure the bandwidth. */
  ping(nowMs: number, { bytesWritten }: Traffic): boolean {
    const written = bytesWritten - this.#answeredBytes;
    const isMeasuring = written >= this.#writtenAtPing + PING_BYTES;
    this.#answeredBytes += PING_BYTES;
    this.#writtenAtPing = written;
    return isMeasuring || this.#pings.spend(nowMs);
  }

  settings(nowMs: number): boolean {
    this.#answeredBytes += ACK_BYTES;
    return this.#settings.spend(nowMs);
  }

  streamOpened(): void {
    this.#explained += HEADER_BYTES;
  }

  dataReceived(bytes: number): void {
    this.#explained += BYTES_PER_DATA_BYTE * bytes;
  }

  /** Compares the received bytes with what explains them: data, headers, and updates of windows for what was written. */
  overhead(nowMs: number, { bytesRead, bytesWritten }: Traffic): boolean {
    const received = bytesRead - this.#seenRead;
    const explained = this.#explained + bytesWritten - this.#seenWritten;
    this.#seenRead = bytesRead;
    this.#seenWritten = bytesWritten;
    this.#explained = 0;
    return this.#overhead.spend(nowMs, Math.max(0, received - explained));
  }
}
