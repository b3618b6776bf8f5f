import type { Log } from "@forage/common/log";
import { CoordinatorError } from "../errors.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";
import type { Store } from "../store/index.ts";

/** A log line names so many nodes and counts the rest. */
const LOGGED_NODES_MAX = 10;

/**
 * Holds back decisions after a start until each node that counts as ready has connected, or no longer counts as ready. An old copy
 * of the store shows only when a node connects that has seen later data, and until then no decision may follow from it. Reports
 * of agents and calls of clients are written at once.
 *
 * A store that this process has read while another coordinator decided can't be an old copy: nothing is held back then.
 */
export class StartGate {
  readonly #state: ClusterView;
  readonly #log: Log;
  readonly #opened = Promise.withResolvers<void>();
  readonly #unsubscribe: () => void;
  #over = false;

  constructor(state: ClusterView, log: Log, isProven = false) {
    this.#state = state;
    this.#log = log;
    this.#unsubscribe = state.subscribe((changes) => {
      if (changes.some(({ kind }) => kind === "node")) this.look();
    });
    // A gate may close while no write waits for it.
    this.#opened.promise.catch(() => undefined);
    if (isProven) this.#open();
    else this.look();
    if (this.#over) return;
    const nodes = state
      .nodes()
      .filter(isAwaited)
      .map(({ name }) => name);
    log.info({ event: "decisions-held-back", nodes: nodes.slice(0, LOGGED_NODES_MAX), count: nodes.length });
  }

  /** Reports whether no start waits any more. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Resolves when decisions may be written. Rejects if that can't happen any more. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Must be called when a node has connected. */
  look(): void {
    if (!this.#over && !this.#state.nodes().some(isAwaited)) this.#open();
  }

  /** Rejects what waits: the store is out of date, or the coordinator stops. */
  close(reason: string): void {
    if (this.#over) return;
    this.#end();
    this.#opened.reject(new CoordinatorError("UNAVAILABLE", reason));
  }

  /** Returns the store for those who decide. Their writes wait for the gate. */
  gated(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        if (name === "txn") return (...given: Parameters<Store["txn"]>) => this.#write(target, given);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  async #write(store: Store, given: Parameters<Store["txn"]>): ReturnType<Store["txn"]> {
    await this.opened;
    return store.txn(...given);
  }

  #open(): void {
    this.#end();
    this.#log.info({ event: "decisions-begin" });
    this.#opened.resolve();
  }

  #end(): void {
    this.#over = true;
    this.#unsubscribe();
  }
}

/** Reports whether the node counts as ready only because the coordinator has just started. */
function isAwaited({ health }: NodeEntry): boolean {
  return health.ready && health.lastSeenMs === undefined;
}
