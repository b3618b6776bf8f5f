import { WorkspacePhase, type WorkspaceStatus, WorkspaceType } from "@forage/proto/core";
import type { Column } from "../output/table.ts";
import { age } from "./timestamp.ts";

/** Returns the columns of workspaces. */
export function workspaceColumns(nowMs: number): Column<WorkspaceStatus>[] {
  return [
    { title: "INSTANCE", value: ({ id }) => id },
    { title: "WORKSPACE", value: ({ metadata }) => metadata?.metaId ?? "" },
    { title: "OWNER", value: ({ metadata }) => metadata?.owner ?? "" },
    { title: "PHASE", value: ({ phase }) => phaseName(phase) },
    { title: "CLASS", value: ({ spec }) => spec?.class ?? "" },
    { title: "NODE", value: ({ runtime }) => runtime?.nodeName ?? "" },
    { title: "AGE", value: ({ metadata }) => age(metadata?.startedAt, nowMs), alignRight: true },
    { title: "TYPE", value: ({ spec }) => typeName(spec?.type), wide: true },
    { title: "URL", value: ({ spec }) => spec?.url ?? "", wide: true },
    { title: "MESSAGE", value: messageOf, whenFilled: true },
  ];
}

function messageOf({ conditions, message }: WorkspaceStatus): string {
  return conditions?.failed || conditions?.headlessTaskFailed || conditions?.timeout || message;
}

/** Returns the name of a phase for display, such as `Running`. */
export function phaseName(phase: WorkspacePhase): string {
  const name = Object.entries(WorkspacePhase).find(([, value]) => value === phase)?.[0] ?? "UNKNOWN";
  return name.slice(0, 1) + name.slice(1).toLowerCase();
}

function typeName(type: WorkspaceType | undefined): string {
  return (Object.entries(WorkspaceType).find(([, value]) => value === type)?.[0] ?? "").toLowerCase();
}
