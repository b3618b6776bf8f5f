import { Counter, Gauge, type Registry } from "prom-client";

/** The port through which somebody reaches a workspace. */
export type Door = "ingress" | "ssh";
/** `in`: from the visitor to the workspace. */
export type Direction = "in" | "out";

/** Reasons why a visitor was refused, as the label of a metric. */
export type RefusalReason =
  | "no-workspace"
  | "not-authorized"
  | "login-link"
  | "no-node"
  | "too-many"
  | "forbidden-target";

/** Counts what passes the ports of workspaces. */
export class AccessStats {
  readonly #open = new Map<Door, number>();
  readonly #served = new Map<Door, number>();
  readonly #bytes = new Map<string, readonly [Door, Direction, number]>();
  readonly #refused = new Map<string, readonly [Door, RefusalReason, number]>();

  /** Counts a request or connection as open. Returns a function that counts it as ended; further calls of it do nothing. */
  begin(door: Door): () => void {
    this.#served.set(door, (this.#served.get(door) ?? 0) + 1);
    this.#open.set(door, this.openOf(door) + 1);
    let open = true;
    return () => {
      if (open) this.#open.set(door, this.openOf(door) - 1);
      open = false;
    };
  }

  moved(door: Door, direction: Direction, bytes: number): void {
    const key = `${door} ${direction}`;
    this.#bytes.set(key, [door, direction, (this.#bytes.get(key)?.[2] ?? 0) + bytes]);
  }

  refused(door: Door, reason: RefusalReason): void {
    const key = `${door} ${reason}`;
    this.#refused.set(key, [door, reason, (this.#refused.get(key)?.[2] ?? 0) + 1]);
  }

  openOf(door: Door): number {
    return this.#open.get(door) ?? 0;
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
        for (const [door, count] of open) this.set({ door }, count);
      },
    });
    new Counter({
      name: "forage_workspace_access_total",
      help: "Requests, WebSockets and SSH connections to workspaces that were served.",
      labelNames: ["door"],
      registers,
      collect() {
        this.reset();
        for (const [door, count] of served) this.inc({ door }, count);
      },
    });
    new Counter({
      name: "forage_workspace_access_bytes_total",
      help: "Bytes between visitors and workspaces; in: to the workspace.",
      labelNames: ["door", "direction"],
      registers,
      collect() {
        this.reset();
        for (const [door, direction, count] of bytes.values()) this.inc({ door, direction }, count);
      },
    });
    new Counter({
      name: "forage_workspace_access_refused_total",
      help: "Visits of workspaces that were refused, by reason.",
      labelNames: ["door", "reason"],
      registers,
      collect() {
        this.reset();
        for (const [door, reason, count] of refused.values()) this.inc({ door, reason }, count);
      },
    });
  }
}
