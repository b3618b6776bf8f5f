import { Counter, Gauge, type Registry } from "prom-client";
import type { Backups } from "./open-backups.ts";

export function backupMetrics(backups: Pick<Backups, "stats">, registers: Registry[]): void {
  new Gauge({
    name: "forage_backup_last_timestamp_seconds",
    help: "When the newest backup was written and verified; 0: there is none.",
    registers,
    collect() {
      this.set((backups.stats().lastMs ?? 0) / 1_000);
    },
  });
  new Counter({
    name: "forage_backup_failures_total",
    help: "Scheduled backups that could not be written or verified.",
    registers,
    collect() {
      this.reset();
      this.inc(backups.stats().failures);
    },
  });
}
