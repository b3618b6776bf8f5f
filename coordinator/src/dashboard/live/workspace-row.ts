import { WorkspacePhase, type WorkspaceStatus } from "@forage/proto/core";
import { toEpochMs } from "../../model/timestamp.ts";
import type { Tone, WorkspaceRow } from "./rows.ts";

/** The workspace instances, if the coordinator serves workspaces. */
export interface LiveWorkspaces {
  /** The namespace of all workspaces, to which permissions refer. */
  readonly namespace: string;
  ids(): string[];
  /** Returns the status without the owner token, or undefined if the instance no longer exists. */
  statusOf(id: string): WorkspaceStatus | undefined;
  /**
   * Calls the listener with the id of each instance whose status changes. Returns a function that
   * removes the listener.
   */
  subscribe(changed: (id: string) => void): () => void;
}

export function workspaceRow(status: WorkspaceStatus, namespace: string): WorkspaceRow {
  const { id, metadata, spec, phase, conditions, message, runtime } = status;
  const trouble = conditions?.failed || conditions?.headlessTaskFailed || conditions?.timeout || "";
  return {
    id,
    namespace,
    workspace: metadata?.metaId ?? "",
    owner: metadata?.owner ?? "",
    phase: phaseName(phase),
    tone: toneOf(phase, conditions?.failed !== undefined && conditions.failed !== ""),
    message: trouble === "" ? message : trouble,
    url: webUrl(spec?.url ?? ""),
    pod: runtime?.podName ?? "",
    node: runtime?.nodeName ?? "",
    startedMs: toEpochMs(metadata?.startedAt) ?? 0,
  };
}

function phaseName(phase: WorkspacePhase): string {
  const name = Object.entries(WorkspacePhase).find(([, value]) => value === phase)?.[0] ?? "UNKNOWN";
  return `${name.slice(0, 1)}${name.slice(1).toLowerCase()}`;
}

function toneOf(phase: WorkspacePhase, hasFailed: boolean): Tone {
  if (hasFailed || phase === WorkspacePhase.INTERRUPTED || phase === WorkspacePhase.UNKNOWN) return "bad";
  if (phase === WorkspacePhase.RUNNING) return "good";
  return phase === WorkspacePhase.STOPPED ? "off" : "busy";
}

/**
 * Returns the URL if a browser can open it. URLs come from a template in the settings, which may
 * contain anything.
 */
function webUrl(text: string): string {
  const url = URL.parse(text);
  return url?.protocol === "https:" || url?.protocol === "http:" ? text : "";
}
