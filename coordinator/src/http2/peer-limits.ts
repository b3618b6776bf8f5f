import { Budget } from "./budget.ts";
import { abuse, type CloseReason } from "./connection-error.ts";

/** The rate that nghttp2 takes for normal: a client that cancels more than this for long is broken or hostile. */
const RESETS = { burst: 256, perSecond: 33 };
/** For a connection of an address that was cut before. */
const PACED_RESETS = { burst: 32, perSecond: 33 };
/** Clients send a PING every few seconds, and those that estimate bandwidth one for each burst of data. */
const PINGS = { burst: 100, perSecond: 10 };
/** Clients send one, or a few while they tune their windows. Each can change the window of every stream. */
const SETTINGS = { burst: 20, perSecond: 1 };
/** Clients send PRIORITY frames at the start, and frames of streams that have just ended. */
const EMPTY_FRAMES = { burst: 200, perSecond: 20 };
/** Clients send one or two for what they have read. */
const WINDOW_UPDATES = { burst: 500, perSecond: 100 };
/** Enough for a client whose window is as small as a message. */
const UPDATES_PER_DATA = 2;
const UPDATES_PER_STREAM = 2;
const EMPTY_PER_STREAM = 2;

/** A stream that lived longer is a normal one that the client cancels: proxies hold theirs for minutes. */
const QUICK_RESET_MS = 250;

/** Counts what a peer does that costs this side and not the peer. Each method throws ConnectionError when it is too much. */
export class PeerLimits {
  readonly #resets: Budget;
  readonly #pings: Budget;
  readonly #settings: Budget;
  readonly #emptyFrames: Budget;
  readonly #windowUpdates: Budget;

  /** `isPaced`: the address of the peer was cut before. */
  constructor(isPaced: boolean, nowMs: number) {
    this.#resets = new Budget(isPaced ? PACED_RESETS : RESETS, nowMs);
    this.#pings = new Budget(PINGS, nowMs);
    this.#settings = new Budget(SETTINGS, nowMs);
    this.#emptyFrames = new Budget(EMPTY_FRAMES, nowMs);
    this.#windowUpdates = new Budget(WINDOW_UPDATES, nowMs);
  }

  /** Counts a stream that was reset at once, by the peer or because its request was wrong. */
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
