import { Counter, Gauge, type Registry } from "prom-client";

/**
 * The kind of port through which a visitor reaches a workspace. It is the label `door` of the
 * metrics.
 */
export type EntryPoint = "ingress" | "ssh";
/** The direction of bytes: `in` is from the visitor to the workspace. */
export type Direction = "in" | "out";

/** The reasons why a visitor is refused. They are values of a metric's label. */
export type RefusalReason =
  | "no-workspace"
  | "not-authorized"
  | "login-link"
  | "no-node"
  | "too-many"
  | "forbidden-target";

/** Counts the requests, connections and bytes that pass the ports of workspaces. */
export class AccessStats {
  readonly #open = new Map<EntryPoint, number>();
  readonly #served = new Map<EntryPoint, number>();
  readonly #bytes = new Map<string, readonly [EntryPoint, Direction, number]>();
  readonly #refused = new Map<string, readonly [EntryPoint, RefusalReason, number]>();

  /**
   * Counts a request or connection as open. Returns a function that counts it as ended; repeated
   * calls have no effect.
   */
  begin(entryPoint: EntryPoint): () => void {
    this.#served.set(entryPoint, (this.#served.get(entryPoint) ?? 0) + 1);
    this.#open.set(entryPoint, this.openOf(entryPoint) + 1);
    let open = true;
    return () => {
      if (open) this.#open.set(entryPoint, this.openOf(entryPoint) - 1);
      open = false;
    };
  }

  moved(entryPoint: EntryPoint, direction: Direction, bytes: number): void {
    const key = `${entryPoint} ${direction}`;
    this.#bytes.set(key, [entryPoint, direction, (this.#bytes.get(key)?.[2] ?? 0) + bytes]);
  }

  refused(entryPoint: EntryPoint, reason: RefusalReason): void {
    const key = `${entryPoint} ${reason}`;
    this.#refused.set(key, [entryPoint, reason, (this.#refused.get(key)?.[2] ?? 0) + 1]);
  }

  openOf(entryPoint: EntryPoint): number {
    return this.#open.get(entryPoint) ?? 0;
  }

  /** Registers the metrics. */
  addMetrics(registers: Registry[]): void {
    const [open, served, bytes, refused] = [this.#open, this.#served, this.#bytes, this.#refused];
    new Gauge({
      name: "forage_workspace_access_open",
      help: "Requests, WebSockets and SSH connections to workspaces that are open.",
      labelNames: ["door"],
      registers,
      collect() {
        for (const [entryPoint, count] of open) this.set({ door: entryPoint }, count);
      },
    });
    new Counter({
      name: "forage_workspace_access_total",
      help: "Requests, WebSockets and SSH connections to workspaces that were served.",
      labelNames: ["door"],
      registers,
      collect() {
        this.reset();
        for (const [entryPoint, count] of served) this.inc({ door: entryPoint }, count);
      },
    });
    new Counter({
      name: "forage_workspace_access_bytes_total",
      help: "Bytes between visitors and workspaces; in: to the workspace.",
      labelNames: ["door", "direction"],
      registers,
      collect() {
        this.reset();
        for (const [entryPoint, direction, count] of bytes.values())
          this.inc({ door: entryPoint, direction }, count);
      },
    });
    new Counter({
      name: "forage_workspace_access_refused_total",
      help: "Visits of workspaces that were refused, by reason.",
      labelNames: ["door", "reason"],
      registers,
      collect() {
        this.reset();
        for (const [entryPoint, reason, count] of refused.values())
          this.inc({ door: entryPoint, reason }, count);
      },
    });
  }
}
