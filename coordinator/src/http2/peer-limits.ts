import { Budget } from "./budget.ts";
import { abuse, type CloseReason } from "./connection-error.ts";
import type { ConnectionOptions } from "./connection-options.ts";

/**
 * The limit of immediate resets, the same as nghttp2's: a client with a higher rate is broken or
 * hostile.
 */
const RESETS = { burst: 256, perSecond: 33 };
/** The limit of immediate resets if a connection of the address was closed for abuse before. */
const PACED_RESETS = { burst: 32, perSecond: 33 };
/** The limit of immediate resets of a node, which relays streams that its own clients cancel. */
const PROVEN_RESETS = { burst: 900, perSecond: 33 };
/**
 * The limit of PING frames. Clients send one every few seconds, or one for each burst of data to
 * estimate the bandwidth.
 */
const PINGS = { burst: 100, perSecond: 10 };
/**
 * The limit of SETTINGS frames. Clients send one, or a few while they tune their windows. Each can
 * change the window of every stream.
 */
const SETTINGS = { burst: 20, perSecond: 1 };
/**
 * The limit of frames without effect. Clients send PRIORITY frames at the start, and frames of
 * streams that have just ended.
 */
const EMPTY_FRAMES = { burst: 200, perSecond: 20 };
/** The limit of WINDOW_UPDATE frames. Clients send one or two for the data that they have read. */
const WINDOW_UPDATES = { burst: 500, perSecond: 100 };
/**
 * The number of additional WINDOW_UPDATE frames per DATA frame: enough for a client whose window is
 * as small as a message.
 */
const UPDATES_PER_DATA = 2;
const UPDATES_PER_STREAM = 2;
const EMPTY_PER_STREAM = 2;

/**
 * The lifetime up to which a cancelled stream counts as an immediate reset. Proxies cancel streams
 * after minutes.
 */
const QUICK_RESET_MS = 250;

/**
 * Limits actions of a peer that cause work on this side but not for the peer. Each method throws
 * ConnectionError if there are too many.
 */
export class PeerLimits {
  readonly #resets: Budget;
  readonly #pings: Budget;
  readonly #settings: Budget;
  readonly #emptyFrames: Budget;
  readonly #windowUpdates: Budget;

  /**
   * Creates the limits. `isPaced` means that a connection of the peer's address was closed for
   * abuse before, and `isProven` that the peer has a certificate of this cluster.
   */
  constructor(
    { isPaced = false, isProven = false }: Pick<ConnectionOptions, "isPaced" | "isProven">,
    nowMs: number,
  ) {
    this.#resets = new Budget(isProven ? PROVEN_RESETS : isPaced ? PACED_RESETS : RESETS, nowMs);
    this.#pings = new Budget(PINGS, nowMs);
    this.#settings = new Budget(SETTINGS, nowMs);
    this.#emptyFrames = new Budget(EMPTY_FRAMES, nowMs);
    this.#windowUpdates = new Budget(WINDOW_UPDATES, nowMs);
  }

  /** Counts a stream that was reset immediately, by the peer or because its request was invalid. */
  reset(nowMs: number): void {
    spend(this.#resets, nowMs, "RESETS", "streams that were reset at once");
  }

  /** Counts a stream that the peer has cancelled. */
  cancelled(openedMs: number, nowMs: number): void {
    if (nowMs - openedMs < QUICK_RESET_MS) this.reset(nowMs);
  }

  ping(nowMs: number): void {
    spend(this.#pings, nowMs, "PINGS", "PING frames");
  }

  settings(nowMs: number): void {
    spend(this.#settings, nowMs, "SETTINGS", "SETTINGS frames");
  }

  emptyFrame(nowMs: number): void {
    spend(this.#emptyFrames, nowMs, "EMPTY_FRAMES", "frames without effect");
  }

  windowUpdate(nowMs: number): void {
    spend(this.#windowUpdates, nowMs, "WINDOW_UPDATES", "WINDOW_UPDATE frames");
  }

  streamOpened(): void {
    this.#windowUpdates.earn(UPDATES_PER_STREAM);
    this.#emptyFrames.earn(EMPTY_PER_STREAM);
  }

  dataSent(): void {
    this.#windowUpdates.earn(UPDATES_PER_DATA);
    this.#pings.earn(1);
  }
}

function spend(budget: Budget, nowMs: number, reason: CloseReason, what: string): void {
  if (!budget.spend(nowMs)) throw abuse(reason, `too many ${what}`);
}
