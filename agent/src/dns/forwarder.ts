import { AnswerCache } from "./answer-cache.ts";
import { failureOf, NAME_ERROR, NO_ERROR, type Query } from "./message.ts";
import type { QueryServer } from "./query-server.ts";

export interface ForwarderOptions {
  /** Returns the host's name servers; empty if it has none. */
  readonly upstreams: () => Promise<readonly string[]>;
  readonly ask: QueryServer;
  /** A monotonic clock in milliseconds. */
  readonly monotonicMs: () => number;
  readonly maxPending?: number;
}

const DEFAULT_MAX_PENDING = 500;
/** The sum is below the 5 s after which C libraries retry. */
const TIMEOUTS_MS = [1_000, 2_000];

/** Forwards queries for other names. Concurrent equal queries share one request. */
export class Forwarder {
  readonly #options: Required<ForwarderOptions>;
  readonly #cache: AnswerCache;
  readonly #pending = new Map<string, Promise<Buffer | undefined>>();

  constructor(options: ForwarderOptions) {
    this.#options = { maxPending: DEFAULT_MAX_PENDING, ...options };
    this.#cache = new AnswerCache(options);
  }

  /** Forwards a query. `bytes` is the query as received. Never rejects: a failure becomes a SERVFAIL answer. */
  async answer(query: Query, bytes: Buffer, protocol: "udp" | "tcp"): Promise<Buffer> {
    const key = `${protocol}:${bytes.toString("latin1", 2).toLowerCase()}`;
    const kept = this.#cache.get(key, query.id);
    if (kept !== undefined) return kept;
    let pending = this.#pending.get(key);
    if (pending === undefined) {
      if (this.#pending.size >= this.#options.maxPending) return failureOf(query);
      pending = this.#ask(key, bytes, protocol).finally(() => this.#pending.delete(key));
      this.#pending.set(key, pending);
    }
    const found = await pending;
    if (found === undefined) return failureOf(query);
    const answer = Buffer.from(found);
    answer.writeUInt16BE(query.id, 0);
    return answer;
  }

  async #ask(key: string, bytes: Buffer, protocol: "udp" | "tcp"): Promise<Buffer | undefined> {
    const { upstreams, ask } = this.#options;
    const servers = await upstreams();
    let failed: Buffer | undefined;
    for (const timeoutMs of TIMEOUTS_MS) {
      for (const server of servers) {
        const answer = await ask(server, bytes, protocol, Math.ceil(timeoutMs / servers.length));
        if (answer === undefined) continue;
        // The server refused or failed, but another one may answer.
        const rcode = answer.readUInt16BE(2) & 15;
        if (rcode === NO_ERROR || rcode === NAME_ERROR) {
          this.#cache.put(key, answer);
          return answer;
        }
        failed = answer;
      }
      if (failed !== undefined) return failed;
    }
    return failed;
  }
}
