import { type BudgetRate, RateBudget } from "./rate-budget.ts";

/**
 * The budget of streams that a peer opens and resets at once. Each costs the server as much as an answered call (0.1 ms
 * of CPU) and the peer almost nothing. The rate is nghttp2's limit: a client that cancels more for a long time is
 * broken or hostile. The burst allows for a proxy that drops all its short look-ups together, and costs 30 ms of CPU.
 */
export const RESETS: BudgetRate = { burst: 256, perSecond: 33 };
/**
 * The budget of a connection with accepted credentials: nodes and gateways relay streams that their own clients cancel.
 * It is below the 1,000 at which nghttp2 closes a connection by itself without giving the peer a reason.
 */
export const PROVEN_RESETS: BudgetRate = { burst: 900, perSecond: 33 };
/** The budget of a connection from an address that offended before. */
export const PACED_RESETS: BudgetRate = { burst: 32, perSecond: 33 };
/** A stream that is reset after this time counts as normal. Proxies keep theirs for minutes before they cancel them. */
export const QUICK_RESET_MS = 250;

/** Clients send a PING every few seconds. Those that estimate bandwidth send one for each burst of data. */
const PINGS: BudgetRate = { burst: 100, perSecond: 10 };
/**
 * Clients send one SETTINGS frame, or a few while they tune their windows. Each can change the window of every stream.
 */
const SETTINGS: BudgetRate = { burst: 20, perSecond: 1 };
/** The budget of bytes that neither are data nor follow from the data of either side. */
const OVERHEAD: BudgetRate = { burst: 256 * 1024, perSecond: 16 * 1024 };
/** The allowance for a stream's headers and trailers. */
const HEADER_BYTES = 16 * 1024;
/**
 * The number of received bytes allowed per byte of data. The smallest message takes 5 bytes, and its frame header 9
 * more.
 */
const BYTES_PER_DATA_BYTE = 3;
/** The size of a PING frame, and of its answer. */
const PING_BYTES = 17;
/** The size of the answer to a SETTINGS frame. */
const ACK_BYTES = 9;

/** The number of bytes transferred over a connection. */
export interface Traffic {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/**
 * Counts the frames of a connection that cost this side something and carry no data. Each method returns false when a
 * limit is exceeded.
 */
export class SessionLimits {
  readonly #pings: RateBudget;
  readonly #settings: RateBudget;
  readonly #overhead: RateBudget;
  /** The written bytes that answered PING and SETTINGS frames. They don't allow the peer further frames. */
  #answeredBytes = 0;
  #writtenAtPing = 0;
  /** The number of bytes that may have been received by now. */
  #explained = 0;
  #seenRead = 0;
  #seenWritten = 0;

  constructor(nowMs: number) {
    this.#pings = new RateBudget(PINGS, nowMs);
    this.#settings = new RateBudget(SETTINGS, nowMs);
    this.#overhead = new RateBudget(OVERHEAD, nowMs);
  }

  /**
   * Counts a PING. A PING is free if other bytes were written since the last one, because it may measure the bandwidth.
   */
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

  /** The number of bytes received until the last check for overhead. */
  get receivedBytes(): number {
    return this.#seenRead;
  }

  /** Compares the received bytes with those allowed for: data, headers, and window updates for written bytes. */
  overhead(nowMs: number, traffic: Traffic): boolean {
    const { bytesRead } = traffic;
    const received = bytesRead - this.#seenRead;
    // Most connections have received nothing since their last check. Each of the two numbers takes a call into the system's part.
    if (received === 0) return true;
    const { bytesWritten } = traffic;
    const explained = this.#explained + bytesWritten - this.#seenWritten;
    this.#seenRead = bytesRead;
    this.#seenWritten = bytesWritten;
    this.#explained = 0;
    return this.#overhead.spend(nowMs, Math.max(0, received - explained));
  }
}
