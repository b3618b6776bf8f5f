import { createHash } from "node:crypto";

/** One entry of an audit log. */
export interface AuditFields {
  /**
   * The kind of entry. `call`: a call has ended. `stream-opened`: a streaming call has begun. `refused`: a call was
   * rejected for its credentials. `refusals-left-out`, `entries-lost`: `count` entries are missing.
   * `coordinator-started`.
   */
  readonly event: string;
  /** The caller: `token:ID` or `node NAME`. Empty without accepted credentials. */
  readonly caller?: string;
  /** The peer's `address:port`. */
  readonly peer?: string;
  /** The called method: `/package.Service/Method`. */
  readonly method?: string;
  /** The objects that the request names. */
  readonly target?: Readonly<Record<string, string>>;
  /** The name of the gRPC status. */
  readonly result?: string;
  /** The reason of a result other than OK. */
  readonly message?: string;
  readonly count?: number;
}

export interface AuditEntry extends AuditFields {
  /** The entry's number, which starts at 1 and grows by 1. */
  readonly sequence: number;
  /** The time in ISO 8601, UTC. */
  readonly time: string;
  /** The hash of the previous entry; 64 zeros for the first one. */
  readonly previous: string;
  /** The SHA-256 of the line without this field, in hex. */
  readonly hash: string;
}

/** The end of a chain, to which the next entry is appended. */
export interface ChainHead {
  readonly sequence: number;
  readonly hash: string;
}

export const EMPTY_CHAIN: ChainHead = { sequence: 0, hash: "0".repeat(64) };

/** Each line is a JSON object whose last field is its hash. */
const SEALED = /^(.*),"hash":"([0-9a-f]{64})"\}$/s;

/** Returns the line of the next entry, and the new end of the chain. */
export function sealEntry(
  fields: AuditFields,
  time: string,
  head: ChainHead,
): { readonly line: string; readonly head: ChainHead } {
  const sequence = head.sequence + 1;
  const body = JSON.stringify({ sequence, time, ...fields, previous: head.hash });
  const hash = hashOf(body);
  return { line: `${body.slice(0, -1)},"hash":"${hash}"}`, head: { sequence, hash } };
}

/** Returns the entry of a line, or undefined if `sealEntry` did not make the line. */
export function openEntry(line: string): AuditEntry | undefined {
  const [, start = "", hash = ""] = SEALED.exec(line) ?? [];
  const body = `${start}}`;
  if (start === "" || hashOf(body) !== hash) return undefined;
  const entry = parse(body);
  const isEntry = Number.isSafeInteger(entry?.sequence) && typeof entry?.previous === "string";
  return entry !== undefined && isEntry ? { ...entry, hash } : undefined;
}

/** Checks that lines continue one chain. Lines are passed in batches, so that a long log needs little memory. */
export class ChainCheck {
  #head: ChainHead | undefined;
  #first: number | undefined;
  #count = 0;

  /** The last checked entry. */
  get head(): ChainHead | undefined {
    return this.#head;
  }

  /** The sequence of the first checked entry. */
  get first(): number | undefined {
    return this.#first;
  }

  get count(): number {
    return this.#count;
  }

  /** Checks the next line. Returns its entry, or the problem. */
  check(line: string): AuditEntry | { readonly problem: string } {
    const after = this.#head === undefined ? "at the start" : `after entry ${this.#head.sequence}`;
    const entry = openEntry(line);
    if (entry === undefined) return { problem: `the entry ${after} was changed` };
    const head = this.#head ?? (entry.sequence === 1 ? EMPTY_CHAIN : undefined);
    if (head !== undefined && entry.sequence !== head.sequence + 1)
      return { problem: `entries are missing ${after}: the next one is ${entry.sequence}` };
    if (head !== undefined && entry.previous !== head.hash)
      return {
        problem: `entry ${entry.sequence} does not continue the chain: an entry before it was replaced`,
      };
    this.#head = { sequence: entry.sequence, hash: entry.hash };
    this.#first ??= entry.sequence;
    this.#count += 1;
    return entry;
  }
}

function hashOf(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}

function parse(body: string): Omit<AuditEntry, "hash"> | undefined {
  try {
    return JSON.parse(body) as Omit<AuditEntry, "hash">;
  } catch {
    return undefined;
  }
}
