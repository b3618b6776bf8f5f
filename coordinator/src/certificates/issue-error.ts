/** The length limit of messages, because an authority's text may be long. */
const MAX_MESSAGE_LENGTH = 500;

/**
 * The scope of a failed attempt: - hostname: only this hostname waits. - issuer: all hostnames wait
 * for the issuer, and the failure counts against none. - rate: the hostname waits, and the issuer
 * is paused shortly.
 */
export type Blame = "hostname" | "issuer" | "rate";

export interface IssueErrorOptions {
  readonly blame: Blame;
  /** The delay in milliseconds before which the authority requests no further attempt. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** A failed attempt, with the authority's reason if it gave one. Never contains a key. */
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

/** Returns the text as one line of limited length, without control characters. */
export function oneLine(text: string): string {
  const line = text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/ {2,}/g, " ")
    .trim();
  return line.length <= MAX_MESSAGE_LENGTH ? line : `${line.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}
