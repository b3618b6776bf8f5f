import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Log } from "@forage/common/log";
import { CoordinatorError } from "../errors.ts";
import { decodeJsonRecord, encodeJsonRecord } from "../model/codec.ts";
import type { EventRecorder } from "../model/event.ts";
import { HISTORY_KEY, ROLLBACK_KEY } from "../model/keys.ts";
import { type Store, StoreError } from "../store/index.ts";
import { assignmentRevision, epochOf } from "./assignment-revision.ts";

export interface HistoryGuardOptions {
  readonly store: Store;
  readonly epoch: number;
  /** The store's lineage, which is new with each restore. A copy of the files keeps it. */
  readonly lineage: string;
  /**
   * Returns the secrets that sign the marks of nodes, so that a node can't claim a later revision than it has received. The
   * first one signs new marks. They are not part of the store.
   */
  readonly secrets: () => readonly Uint8Array[];
  readonly log: Log;
  readonly events: EventRecorder;
  readonly randomName: (length: number) => string;
}

/** One start of a coordinator on this store. */
interface Start {
  readonly id: string;
  /** The store's revision at the start, which is also the last revision of the start before. */
  readonly fromRevision: number;
}

interface History {
  /** The starts, oldest first. Only the newest `MAX_STARTS` are kept. */
  readonly starts: readonly Start[];
}

/** The limit of recorded starts. For a node that was away for longer, only revisions are compared. */
const MAX_STARTS = 500;
const ID_LENGTH = 16;

/**
 * Detects that the store was rolled back: an old copy of its files was put back without a restore. Each start of a
 * coordinator has a random id, which agents store together with the last revision that they received. An agent with an
 * unknown start, or with a later revision of a start than this store has, proves the rollback, even if new writes have
 * reached the lost revisions. From then on the coordinator decides and writes nothing, and every container stays unchanged
 * until the store is restored intentionally, which begins a new epoch. Only signed marks count, so that one node with an
 * invented revision can't stop the cluster.
 */
export class HistoryGuard {
  readonly #options: HistoryGuardOptions;
  readonly #history: History;
  /** The lineage that agents store. */
  readonly lineage: string;
  /** The keys of secrets. Each mark would prepare its key again, which takes half of its time. */
  readonly #keys = new WeakMap<Uint8Array, KeyObject>();
  #refusal: string | undefined;
  readonly #refused = new AbortController();

  static async open(options: HistoryGuardOptions): Promise<HistoryGuard> {
    const { store, epoch } = options;
    const [known, refused] = await Promise.all([store.get(HISTORY_KEY), store.get(ROLLBACK_KEY)]);
    const history = known ? decodeJsonRecord<History>(HISTORY_KEY, known.value) : { starts: [] };
    const refusal = refused && decodeJsonRecord<Refusal>(ROLLBACK_KEY, refused.value);
    const guard = new HistoryGuard(options, await noteStart(history, options));
    if (refusal?.epoch === epoch) guard.#refuse(refusal.message);
    return guard;
  }

  private constructor(options: HistoryGuardOptions, history: History) {
    this.#options = options;
    this.#history = history;
    const last = history.starts.at(-1);
    this.lineage = last === undefined ? options.lineage : `${options.lineage}/${last.id}`;
  }

  /** The reason why nothing is decided or written. Undefined: no rollback was detected. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** Calls the function with the reason when a rollback is detected, or at once if it was detected before. */
  onRefused(run: (reason: string) => void): void {
    const { signal } = this.#refused;
    const call = (): void => run(this.#refusal ?? "the store is out of date");
    if (signal.aborted) call();
    else signal.addEventListener("abort", call, { once: true });
  }

  /** Returns the mark that the node stores together with a revision. */
  markFor(node: string, revision: bigint): string {
    const secret = this.#options.secrets()[0] ?? new Uint8Array();
    return `${this.lineage}/${signatureOf(this.#keyOf(secret), node, this.lineage, revision)}`;
  }

  /** Compares the store with the newest revision that a node has received, which is in its hello message. */
  check(node: string, { lineage, revision }: { readonly lineage: string; readonly revision: bigint }): void {
    const { store, epoch, events, log } = this.#options;
    if (this.#refusal !== undefined || !this.#isAhead(lineage, revision)) return;
    if (!this.#isProven(node, lineage, revision)) {
      // The node itself rejects older assignments. Other nodes are not affected.
      log.warn({
        event: "unproven-revision-ignored",
        node,
        seen: String(revision),
        revision: store.revision,
        epoch,
      });
      return;
    }
    const next = Math.max(epoch, epochOf(revision)) + 1;
    const message =
      `node ${node} has received later data than the store contains: an old copy of the data directory was put back; ` +
      "nothing is decided or written, and all containers stay as they are. Put the newer data back; or, to continue with this data, stop the " +
      `coordinator, run \`forage-coordinator backup FILE\`, move the store away and run \`forage-coordinator restore FILE --epoch ${next}\``;
    log.error({
      event: "store-rolled-back",
      node,
      seen: String(revision),
      revision: store.revision,
      epoch,
      message,
    });
    events.record({
      namespace: "",
      kind: "coordinator",
      name: "coordinator",
      type: "Warning",
      reason: "StoreRolledBack",
      message,
    });
    const value = encodeJsonRecord({ epoch, message } satisfies Refusal);
    // If the disk accepts no writes, the next start detects the rollback again.
    store.txn([], [{ type: "put", key: ROLLBACK_KEY, value }]).catch((err: unknown) => {
      log.error({ event: "roll-back-not-recorded", err });
    });
    this.#refuse(message);
  }

  /** Returns a store that rejects writes once a rollback was detected. */
  guarded(): Store {
    return new Proxy(this.#options.store, {
      get: (target, name) => {
        if (name === "txn") return (...given: Parameters<Store["txn"]>) => this.#write(given);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  async #write(given: Parameters<Store["txn"]>): ReturnType<Store["txn"]> {
    if (this.#refusal !== undefined) throw new CoordinatorError("FAILED_PRECONDITION", this.#refusal);
    return this.#options.store.txn(...given);
  }

  #refuse(message: string): void {
    this.#refusal = message;
    this.#refused.abort();
  }

  #isProven(node: string, seen: string, revision: bigint): boolean {
    const [ofStore = "", id = "", signature = ""] = seen.split("/");
    const given = Buffer.from(signature);
    return this.#options.secrets().some((secret) => {
      const expected = Buffer.from(signatureOf(this.#keyOf(secret), node, `${ofStore}/${id}`, revision));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  }

  #keyOf(secret: Uint8Array): KeyObject {
    const known = this.#keys.get(secret);
    if (known !== undefined) return known;
    const key = createSecretKey(secret);
    this.#keys.set(secret, key);
    return key;
  }

  #isAhead(seen: string, revision: bigint): boolean {
    const { store, epoch, lineage } = this.#options;
    // The store was restored intentionally, so the agent accepts its assignments.
    if (revision === 0n || epochOf(revision) < epoch) return false;
    if (epochOf(revision) > epoch) return true;
    const [ofStore, id] = seen.split("/");
    const { starts } = this.#history;
    const index = starts.findIndex((start) => start.id === id);
    if (ofStore === lineage && id !== undefined) {
      if (index < 0 && starts.length < MAX_STARTS) return true;
      const end = starts[index + 1];
      if (index >= 0 && end !== undefined) return revision > assignmentRevision(epoch, end.fromRevision);
    }
    return revision > assignmentRevision(epoch, store.revision);
  }
}

interface Refusal {
  readonly epoch: number;
  readonly message: string;
}

function signatureOf(key: KeyObject, node: string, lineage: string, revision: bigint): string {
  return createHmac("sha256", key).update(`${node}\n${lineage}\n${revision}`).digest("base64url");
}

/** Records this start. If the disk accepts no writes, the last recorded start is continued. */
async function noteStart(history: History, options: HistoryGuardOptions): Promise<History> {
  const { store, randomName, log } = options;
  const start = { id: randomName(ID_LENGTH), fromRevision: store.revision };
  const next = { starts: [...history.starts, start].slice(-MAX_STARTS) };
  try {
    await store.txn([], [{ type: "put", key: HISTORY_KEY, value: encodeJsonRecord(next) }]);
    return next;
  } catch (err) {
    if (!(err instanceof StoreError)) throw err;
    log.warn({ event: "start-not-recorded", err });
    return history;
  }
}
