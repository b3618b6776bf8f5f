import {
  ContentStage,
  TransferKind,
  type TransferOrder,
  type TransferReport,
  TransferState,
  type WorkspaceOrder,
  type WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";

/** A unit of work for a workspace. Repeating it after a crash at any moment leads to the same result. */
export type Work =
  | { readonly type: "initialize" }
  | { readonly type: "transfer"; readonly transfer: TransferOrder }
  | { readonly type: "read-git-status" }
  | { readonly type: "dispose" };

export type Decision =
  | { readonly type: "work"; readonly work: Work }
  /**
   * `untilMs` is by the monotonic clock; undefined means until something changes. `forPod` means until the pod's
   * containers have ended.
   */
  | { readonly type: "wait"; readonly untilMs: number | undefined; readonly forPod: boolean };

export interface WorkspaceView {
  readonly order: WorkspaceOrder;
  readonly report: WorkspaceReport;
  /** Whether a container of the pod may still write into the content. */
  readonly podActive: boolean;
  /** Whether an attempt to read the Git status has ended. */
  readonly gitStatusRead: boolean;
  /** Monotonic times before which failed work is not repeated, by `workKey`. */
  readonly notBeforeMs: ReadonlyMap<string, number>;
  readonly monotonicMs: number;
}

/** Returns what to do next for a workspace. Pure. */
export function nextWork(view: WorkspaceView): Decision {
  const { order, report, podActive } = view;
  if (report.stage === ContentStage.DISPOSED) return WAIT_FOR_CHANGE;
  if (order.dispose) {
    return podActive ? { ...WAIT_FOR_CHANGE, forPod: true } : whenDue(view, [{ type: "dispose" }]);
  }
  // Without a record, the content may be in a volume that is not mounted yet.
  const isUnknown = report.stage === ContentStage.UNSPECIFIED;
  if (isUnknown || report.stage === ContentStage.INITIALIZING) return whenDue(view, [{ type: "initialize" }]);
  const open = order.transfers.filter((transfer) => !isSettled(report, transfer.id));
  const final = open.filter(({ kind }) => kind === TransferKind.FINAL_BACKUP);
  const others = open.filter(({ kind }) => kind !== TransferKind.FINAL_BACKUP);
  const works: Work[] = others.map((transfer) => ({ type: "transfer", transfer }));
  if (!podActive) {
    if (wantsGitStatus(view)) works.push({ type: "read-git-status" });
    works.push(...final.map((transfer): Work => ({ type: "transfer", transfer })));
  }
  const decision = whenDue(view, works);
  return decision.type === "wait" ? { ...decision, forPod: podActive && final.length > 0 } : decision;
}

/** Identifies a unit of work within one workspace. */
export function workKey(work: Work): string {
  return work.type === "transfer" ? `transfer ${work.transfer.id}` : work.type;
}

/** Reports whether work in progress is still required by the order. */
export function isDesired(work: Work, order: WorkspaceOrder): boolean {
  if (work.type === "dispose") return true;
  if (order.dispose) return false;
  if (work.type !== "transfer") return true;
  return order.transfers.some(({ id, object }) => id === work.transfer.id && object === work.transfer.object);
}

export function transferOf(report: WorkspaceReport, id: string): TransferReport | undefined {
  return report.transfers.find((it) => it.id === id);
}

const WAIT_FOR_CHANGE = { type: "wait", untilMs: undefined, forPod: false } as const;

/** Reports whether the Git status is due. It is read together with the final backup, after which nothing changes. */
function wantsGitStatus({ order, report, gitStatusRead }: WorkspaceView): boolean {
  if (!order.readGitStatus || gitStatusRead || report.gitStatus !== undefined) return false;
  if (report.stage !== ContentStage.READY) return false;
  return order.transfers.some(({ kind, id }) => kind === TransferKind.FINAL_BACKUP && !isSettled(report, id));
}

function isSettled(report: WorkspaceReport, id: string): boolean {
  const state = transferOf(report, id)?.state;
  return state === TransferState.DONE || state === TransferState.FAILED;
}

/** Returns the first work whose back-off is over, or waits for the earliest. */
function whenDue({ notBeforeMs, monotonicMs }: WorkspaceView, works: readonly Work[]): Decision {
  const due = works.find((work) => (notBeforeMs.get(workKey(work)) ?? 0) <= monotonicMs);
  if (due !== undefined) return { type: "work", work: due };
  const times = works.map((work) => notBeforeMs.get(workKey(work)) ?? 0);
  return { ...WAIT_FOR_CHANGE, untilMs: times.length === 0 ? undefined : Math.min(...times) };
}
