import { Gauge, type Registry } from "prom-client";
import type { CoordinatorTable } from "./coordinator-table.ts";

/** Registers the metrics that the leader of a cluster with several coordinators has. */
export function coordinatorMetrics(table: Pick<CoordinatorTable, "list">, registers: Registry[]): void {
  new Gauge({
    name: "forage_coordinators",
    help: "Coordinators that have reported to this one in the last hour, and this one, by whether they are ready.",
    labelNames: ["ready"],
    registers,
    collect() {
      const all = table.list();
      const ready = all.filter((it) => it.ready).length;
      this.set({ ready: "true" }, ready);
      this.set({ ready: "false" }, all.length - ready);
    },
  });
  new Gauge({
    name: "forage_coordinator_revisions_behind",
    help: "Revisions of the store that each follower had not read at its last report.",
    labelNames: ["coordinator", "address"],
    registers,
    collect() {
      this.reset();
      for (const { leads, name, addresses, revisionsBehind } of table.list())
        if (!leads) this.set({ coordinator: name, address: addresses[0] ?? "" }, Number(revisionsBehind));
    },
  });
}
