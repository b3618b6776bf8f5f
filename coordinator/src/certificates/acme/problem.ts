import { type Blame, IssueError } from "../issue-error.ts";

/** An error in a response of an authority: RFC 8555, section 6.7, and RFC 7807. */
export interface Problem {
  readonly type?: unknown;
  readonly detail?: unknown;
  readonly subproblems?: unknown;
}

const ERROR_PREFIX = "urn:ietf:params:acme:error:";

/**
 * The types of problems that concern the account or the authority, so that every other hostname
 * would fail as well.
 */
const ISSUER_TYPES: ReadonlySet<string> = new Set([
  "serverInternal",
  "badNonce",
  "accountDoesNotExist",
  "externalAccountRequired",
  "userActionRequired",
  "badPublicKey",
  "badSignatureAlgorithm",
  "invalidContact",
  "unsupportedContact",
]);

export interface AnsweredProblem {
  readonly status: number;
  readonly problem: Problem;
  readonly retryAfterMs: number | undefined;
  /** Whether the failed request concerned no hostname, but the directory or a nonce. */
  readonly general?: boolean;
}

/** An error response of the authority. */
export class AcmeProblem extends IssueError {
  /** The problem's type without its common prefix, such as "rateLimited". Empty if the authority gave none. */
  readonly type: string;

  constructor({ status, problem, retryAfterMs, general = false }: AnsweredProblem) {
    const type = problemType(problem);
    super(problemText(problem, `the authority answered with status ${status}`), {
      blame: blameOf(type, status, general),
      retryAfterMs,
    });
    this.type = type;
  }
}

/** Returns the text of a problem and of its subproblems. */
export function problemText(problem: Problem | undefined, otherwise: string): string {
  const detail = typeof problem?.detail === "string" && problem.detail !== "" ? problem.detail : otherwise;
  const type = problemType(problem);
  const parts = Array.isArray(problem?.subproblems) ? problem.subproblems : [];
  const details = parts
    .map((part: unknown) => (part as Problem | null)?.detail)
    .filter((text): text is string => typeof text === "string" && text !== "" && text !== detail);
  return [type === "" ? detail : `${type}: ${detail}`, ...details].join("; ");
}

/**
 * Parses a `Retry-After` header: seconds, or a date. Returns milliseconds from now, or undefined
 * for other texts.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  const atMs = Date.parse(header);
  return Number.isNaN(atMs) ? undefined : Math.max(atMs - nowMs, 0);
}

function blameOf(type: string, status: number, general: boolean): Blame {
  if (type === "rateLimited" || status === 429) return "rate";
  return general || ISSUER_TYPES.has(type) || status >= 500 ? "issuer" : "hostname";
}

function problemType(problem: Problem | undefined): string {
  const type = problem?.type;
  return typeof type === "string" && type.startsWith(ERROR_PREFIX) ? type.slice(ERROR_PREFIX.length) : "";
}
