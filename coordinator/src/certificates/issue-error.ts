/** An authority's text may be long and contain anything. */
const MAX_MESSAGE_LENGTH = 500;

/**
 * The cause of a failed attempt:
 * - hostname: this hostname waits, others continue.
 * - issuer: all hostnames wait for the issuer, and none is blamed.
 * - rate: the hostname waits, and the issuer gets a short pause.
 */
export type Blame = "hostname" | "issuer" | "rate";

export interface IssueErrorOptions {
  readonly blame: Blame;
  /** The time for which the authority requests no further attempts. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The reason why an attempt failed, in the authority's words if there are any. Never contains a key. */
export class IssueError extends Error {
  override readonly name = "IssueError";
  readonly blame: Blame;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { blame, retryAfterMs, cause }: IssueErrorOptions) {
    super(oneLine(message), { cause });
    this.blame = blame;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Returns the text as one line of bounded length, without control characters. */
export function oneLine(text: string): string {
  const line = text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/ {2,}/g, " ")
    .trim();
  return line.length <= MAX_MESSAGE_LENGTH ? line : `${line.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}
