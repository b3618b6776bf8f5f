import type { Random } from "@forage/common/random";
import {
  ContentStage,
  TransferReport,
  TransferState,
  type WorkspaceOrder,
  WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import type { ContentVersion, SimulatedStore } from "./simulated-store.ts";

/** The most reports that wait for the stream. A new stream begins with the present state. */
const MAX_REPORTS = 3;

export interface WorkFacts {
  readonly podRuns: boolean;
  readonly mustSucceed: boolean;
  readonly nowMs: number;
  /** Reports whether the coordinator accepts an upload of the transfer at present. */
  readonly accepts: (transferId: string) => boolean;
}

/** The workspace component of a node, whose content is the number of its changes. */
export class SimulatedNode {
  readonly #random: Random;
  readonly #store: SimulatedStore;
  readonly #transfers = new Map<string, TransferReport>();
  #stage: ContentStage = ContentStage.UNSPECIFIED;
  #version: ContentVersion = { changes: 0, disk: 0 };
  #order: WorkspaceOrder | undefined;
  #reports: WorkspaceReport[] = [];

  constructor(random: Random, store: SimulatedStore) {
    this.#random = random;
    this.#store = store;
  }

  get stage(): ContentStage {
    return this.#stage;
  }

  get version(): ContentVersion {
    return this.#version;
  }

  get hasReports(): boolean {
    return this.#reports.length > 0;
  }

  receive(order: WorkspaceOrder): void {
    this.#order = order;
    for (const id of this.#transfers.keys())
      if (!order.transfers.some((transfer) => transfer.id === id)) this.#transfers.delete(id);
    this.#report();
  }

  /** Returns the next report of the stream. `again` keeps it there, as if it were sent twice. */
  nextReport(again: boolean): WorkspaceReport | undefined {
    return again ? this.#reports[0] : this.#reports.shift();
  }

  /** Changes the content, like a container. */
  change(): void {
    if (this.#stage === ContentStage.READY)
      this.#version = { ...this.#version, changes: this.#version.changes + 1 };
  }

  /** Executes one step of the order. Returns whether it deleted the content. */
  work({ podRuns, mustSucceed, nowMs, accepts }: WorkFacts): boolean {
    const [order, random] = [this.#order, this.#random];
    if (order === undefined || this.#stage === ContentStage.DISPOSED) return false;
    const disposes = order.dispose && !podRuns;
    if (disposes) this.#stage = ContentStage.DISPOSED;
    else if (this.#stage === ContentStage.UNSPECIFIED) this.#stage = ContentStage.INITIALIZING;
    else if (this.#stage === ContentStage.INITIALIZING && !order.contentComplete)
      this.#stage = !mustSucceed && random.chance(0.1) ? ContentStage.FAILED : ContentStage.READY;
    else if (this.#stage === ContentStage.READY)
      this.#transfer(order, { podRuns, mustSucceed, nowMs, accepts });
    this.#report();
    return disposes;
  }

  /** Restarts the agent without its records of transfers, which are then made again. */
  forgetTransfers(): void {
    this.#transfers.clear();
    this.#reports = [];
    this.#report();
  }

  /** Returns the host to service with an empty disk and without orders. */
  loseDisk(): void {
    this.#stage = ContentStage.UNSPECIFIED;
    this.#transfers.clear();
    this.#version = { changes: 0, disk: this.#version.disk + 1 };
    this.#reports = [];
    this.#order = undefined;
  }

  #transfer({ transfers }: WorkspaceOrder, { mustSucceed, nowMs, accepts }: WorkFacts): void {
    const next = transfers.find(({ id }) => !isSettled(this.#transfers.get(id)));
    if (next === undefined) return;
    const outcome = mustSucceed ? 0 : this.#random.next();
    const report = (change: Parameters<typeof TransferReport.fromPartial>[0]): void => {
      this.#transfers.set(next.id, TransferReport.fromPartial({ id: next.id, ...change }));
    };
    if (outcome > 0.97) report({ state: TransferState.FAILED, message: "no such directory" });
    else if (outcome > 0.75 || !accepts(next.id))
      report({ state: TransferState.RETRYING, message: "store away" });
    else {
      const { sizeBytes, sha256 } = this.#store.put(next, this.#version, nowMs);
      report({
        state: TransferState.DONE,
        archive: { object: next.object, sizeBytes: BigInt(sizeBytes), sha256 },
      });
    }
  }

  #report(): void {
    this.#reports.push(
      WorkspaceReport.fromPartial({
        instanceId: "instance",
        stage: this.#stage,
        transfers: [...this.#transfers.values()],
        orderVersion: this.#order?.version ?? 0n,
      }),
    );
    if (this.#reports.length > MAX_REPORTS) this.#reports = this.#reports.slice(-1);
  }
}

function isSettled(report: TransferReport | undefined): boolean {
  return report?.state === TransferState.DONE || report?.state === TransferState.FAILED;
}
