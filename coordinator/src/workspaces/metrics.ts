import { WorkspacePhase } from "@forage/proto/core";
import { TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { Gauge, type Registry } from "prom-client";
import type { NodeSync } from "./node/sync.ts";
import { isKept, isOpen } from "./phase/content.ts";
import type { Subscribers } from "./rpc/subscribers.ts";
import type { WorkspaceView } from "./view.ts";

export interface WorkspaceMetricsSources {
  readonly view: WorkspaceView;
  readonly subscribers: Pick<Subscribers, "count">;
  readonly sync: Pick<NodeSync, "connected" | "usedBytesOf">;
}

/** Registers the metrics of workspaces. */
export function workspaceMetrics(
  { view, subscribers, sync }: WorkspaceMetricsSources,
  registers: Registry[],
): void {
  const gauge = (name: string, help: string, labelNames: string[], collect: (gauge: Gauge) => void): void => {
    new Gauge({
      ...{ name, help, registers, labelNames },
      collect() {
        this.reset();
        collect(this);
      },
    });
  };
  gauge("forage_workspaces", "Workspace instances by phase.", ["phase"], (it) => {
    for (const { record } of view.instances()) it.inc({ phase: phaseName(record.phase) });
  });
  gauge(
    "forage_workspace_transfers",
    "Backups and snapshots that are ordered and not yet complete, by state.",
    ["state"],
    (it) => {
      for (const { record } of view.instances())
        for (const transfer of record.transfers.filter(isOpen))
          it.inc({ state: transfer.state === TransferState.RETRYING ? "retrying" : "running" });
    },
  );
  gauge(
    "forage_workspace_content_bytes",
    "Disk use of the content of workspaces by node, as last measured by the nodes, including content that is being deleted.",
    ["node"],
    (it) => {
      for (const { record } of view.instances())
        if (record.node !== "") it.inc({ node: record.node }, sync.usedBytesOf(record.id));
    },
  );
  gauge(
    "forage_workspace_content_near_limit",
    "Instances whose content takes nearly all of its size limit, or more.",
    [],
    (it) => it.set(view.instances().filter(({ record }) => record.contentNearLimitBytes > 0n).length),
  );
  gauge(
    "forage_workspace_content_kept",
    "Instances whose content could not be saved and stays on its node until an operator decides about it.",
    [],
    (it) => it.set(view.instances().filter(({ record }) => isKept(record)).length),
  );
  gauge("forage_workspace_subscribers", "Open Subscribe streams.", [], (it) => it.set(subscribers.count));
  gauge("forage_workspace_nodes", "Nodes with an open stream for workspaces.", [], (it) =>
    it.set(sync.connected),
  );
}

function phaseName(phase: WorkspacePhase): string {
  return Object.entries(WorkspacePhase).find(([, value]) => value === phase)?.[0] ?? "UNKNOWN";
}
