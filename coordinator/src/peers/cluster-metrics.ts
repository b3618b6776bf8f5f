import { Gauge, type Registry } from "prom-client";

export interface ClusterMetricsSources {
  /** Returns the leader, if this coordinator knows it. */
  readonly leader: () => { readonly name: string; readonly sinceMs?: number | undefined } | undefined;
  /** Queries each member of etcd; undefined if the store is not in etcd. */
  readonly members: (() => Promise<readonly { readonly type: "up" | "down" }[]>) | undefined;
}

/** Registers the metrics that each coordinator of a cluster with several coordinators has. */
export function clusterMetrics({ leader, members }: ClusterMetricsSources, registers: Registry[]): void {
  new Gauge({
    name: "forage_coordinator_leads_since_seconds",
    help: "The time since which a coordinator leads, by its wall clock, in seconds since 1970.",
    labelNames: ["coordinator"],
    registers,
    collect() {
      this.reset();
      const { name, sinceMs } = leader() ?? {};
      if (name !== undefined && sinceMs !== undefined) this.set({ coordinator: name }, sinceMs / 1000);
    },
  });
  if (members === undefined) return;
  new Gauge({
    name: "forage_etcd_members",
    help: "Members of etcd in this coordinator's configuration, by whether they answer it.",
    labelNames: ["answers"],
    registers,
    async collect() {
      const all = await members();
      const up = all.filter(({ type }) => type === "up").length;
      this.set({ answers: "true" }, up);
      this.set({ answers: "false" }, all.length - up);
    },
  });
}
