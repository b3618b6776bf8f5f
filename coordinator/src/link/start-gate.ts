import type { Log } from "@forage/common/log";
import { CoordinatorError } from "../errors.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";
import type { Store } from "../store/index.ts";

/** The largest number of nodes in a log line. The others are counted. */
const LOGGED_NODES_MAX = 10;

/**
 * Delays decisions after a start until each node that counts as Ready has connected, or no longer counts as Ready. An old
 * copy of the store is only detected when a node with later data connects, and no decision may be based on it before.
 * Reports of agents and calls of clients are written at once.
 *
 * A store that this process has followed while another coordinator was leading can't be an old copy, so nothing is delayed
 * then.
 */
export class StartGate {
  readonly #state: ClusterView;
  readonly #log: Log;
  readonly #opened = Promise.withResolvers<void>();
  readonly #unsubscribe: () => void;
  /**
   * The nodes that were awaited at their last change. Each is removed at most once, so that the cost of a start is constant
   * for each node.
   */
  readonly #awaited = new Set<string>();
  #over = false;

  constructor(state: ClusterView, log: Log, isProven = false) {
    this.#state = state;
    this.#log = log;
    this.#unsubscribe = state.subscribe((changes) => {
      let isCheckDue = false;
      for (const change of changes) {
        if (change.type !== "node") continue;
        isCheckDue = true;
        this.#note(change.after);
      }
      if (isCheckDue) this.check();
    });
    for (const node of state.nodes()) this.#note(node);
    // The gate may be closed while no write waits for it.
    this.#opened.promise.catch(() => undefined);
    if (isProven) this.#open();
    else this.check();
    if (this.#over) return;
    const nodes = [...this.#awaited];
    log.info({ event: "decisions-delayed", nodes: nodes.slice(0, LOGGED_NODES_MAX), count: nodes.length });
  }

  /** Reports whether the start is over, so that writes are no longer delayed. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Resolves when decisions may be written. Rejects if that can't happen any more. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Must be called when a node has connected. */
  check(): void {
    if (this.#over) return;
    for (const name of this.#awaited) {
      const node = this.#state.node(name);
      if (node !== undefined && isAwaited(node)) return;
      this.#awaited.delete(name);
    }
    this.#open();
  }

  /** Fails waiting and later writes: the store is out of date, or the coordinator stops. */
  close(reason: string): void {
    if (this.#over) return;
    this.#end();
    this.#opened.reject(new CoordinatorError("UNAVAILABLE", reason));
  }

  /** Returns the store for decisions. Writes wait for the gate. */
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

  #note(node: NodeEntry | undefined): void {
    if (node !== undefined && isAwaited(node)) this.#awaited.add(node.name);
  }

  #open(): void {
    this.#end();
    this.#log.info({ event: "decisions-begin" });
    this.#opened.resolve();
  }

  #end(): void {
    this.#over = true;
    this.#awaited.clear();
    this.#unsubscribe();
  }
}

/** Reports whether the node counts as Ready only because the coordinator has just started. */
function isAwaited({ health }: NodeEntry): boolean {
  return health.ready && health.lastSeenMs === undefined;
}
