import { Counter, Gauge, type Registry } from "prom-client";
import type { PassedPort } from "./serve-connection.ts";

/** Counts the connections to one port that are passed on to the leader. */
export class PassCount {
  /** The connections at present, including those that wait for the leader. */
  open = 0;
  /** The connections that were passed on, also if the leader was lost later. */
  passed = 0;
  /** The connections that were refused because of the limit, or because no leader was known. */
  refused = 0;
}

export type PassCounts = Readonly<Record<PassedPort, PassCount>>;

export function createPassCounts(): PassCounts {
  return { http: new PassCount(), ingress: new PassCount(), ssh: new PassCount() };
}

/** Registers the metrics of connections that a follower passes on. */
export function passMetrics(counts: PassCounts, registers: Registry[]): void {
  const ports = Object.entries(counts);
  new Gauge({
    name: "forage_follower_passed_connections_open",
    help: "Connections that this coordinator passes on to the leader at present, by port.",
    labelNames: ["port"],
    registers,
    collect() {
      for (const [port, { open }] of ports) this.set({ port }, open);
    },
  });
  new Counter({
    name: "forage_follower_passed_connections_total",
    help: "Connections that this coordinator was to pass on to the leader, by port and result.",
    labelNames: ["port", "result"],
    registers,
    collect() {
      this.reset();
      for (const [port, { passed, refused }] of ports) {
        this.inc({ port, result: "passed" }, passed);
        this.inc({ port, result: "refused" }, refused);
      }
    },
  });
}
