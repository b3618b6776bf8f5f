import { type BackOff, backOffMs } from "@forage/common/back-off";
import { withLinkedSignal } from "@forage/common/link-signals";
import type { Log } from "@forage/common/log";
import type { Semaphore } from "@forage/common/semaphore";
import {
  ContentStage,
  type TransferOrder,
  TransferReport,
  TransferState,
  type WorkspaceOrder,
  type WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { type Clock, pause } from "../clock.ts";
import type { ContentActions } from "./content-actions.ts";
import { isDesired, nextWork, transferOf, type Work, workKey } from "./next-work.ts";
import { WorkspaceError } from "./workspace-error.ts";
import type { WorkspaceRecord, WorkspaceRecords } from "./workspace-records.ts";

export interface WorkspaceOptions {
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly records: Pick<WorkspaceRecords, "saveOrder" | "saveReport">;
  readonly actions: ContentActions;
  /** The back-off between attempts of the same work. */
  readonly backOff: BackOff;
  readonly initializeGate: Semaphore;
  readonly transferGate: Semaphore;
  /** Whether a container of the pod may still write. */
  readonly podActive: (podUid: string) => boolean;
  readonly changed: (report: WorkspaceReport) => void;
  /** Called when the workspace was disposed of and its files remain on the disk. */
  readonly disposed: () => void;
  /** Called when the content has become usable for the pod. */
  readonly contentReady: (podUid: string) => void;
  readonly log: Pick<Log, "info" | "warn">;
}

// A store or a Git server is often reachable again within seconds. The cap is short because people wait for their
// workspaces.
export const WORK_BACK_OFF: BackOff = { baseMs: 1_000, capMs: 60_000 };
// The longest delay until the end of a pod's containers is detected.
const POD_POLL_MS = 1_000;
// Progress is for people. More frequent reports would cost more than they are worth.
const PROGRESS_INTERVAL_MS = 1_000;
// A damaged archive is downloaded again in case the damage occurred in transit.
const DAMAGE_TRIES_MAX = 3;
const MESSAGE_LENGTH_MAX = 1_000;
// Logs and editors change the disk use all the time. Reporting every change would cost more than it is worth.
const USE_STEP_BYTES = 1024 * 1024;
const USE_STEP_SHARE = 0.01;

/**
 * Brings the content of one workspace on this host to the state that its order requires. One loop performs one unit of
 * work at a time.
 */
export class Workspace {
  readonly #options: WorkspaceOptions;
  #order: WorkspaceOrder;
  #report: WorkspaceReport;
  #failures = new Map<string, number>();
  #notBeforeMs = new Map<string, number>();
  #current: { readonly work: Work; readonly abort: AbortController } | undefined;
  #wake: AbortController = new AbortController();
  #opened = false;
  #gitStatusRead = false;
  #progressAtMs = 0;
  #forgotten = false;

  constructor(options: WorkspaceOptions, record: WorkspaceRecord) {
    this.#options = options;
    this.#order = record.order;
    this.#report = { ...record.report, orderVersion: record.order.version };
  }

  get order(): WorkspaceOrder {
    return this.#order;
  }

  get report(): WorkspaceReport {
    return this.#report;
  }

  /** Whether containers may use the content now. */
  get isReady(): boolean {
    return this.#opened && this.#report.stage === ContentStage.READY && !this.#order.dispose;
  }

  /** Applies a newer order, which is already on disk. */
  assign(order: WorkspaceOrder): void {
    this.#order = order;
    const desired = new Set(order.transfers.map(({ id }) => id));
    const transfers = this.#report.transfers.filter(({ id }) => desired.has(id));
    this.#publish({ orderVersion: order.version, transfers });
    if (this.#current !== undefined && !isDesired(this.#current.work, order)) this.#current.abort.abort();
    // A changed order may provide what was missing.
    this.#notBeforeMs.clear();
    this.wake();
  }

  /** Records a measurement of the disk use. Small changes are not reported. */
  noteUse(usedBytes: number): void {
    const before = Number(this.#report.usedBytes);
    const step = Math.max(USE_STEP_BYTES, before * USE_STEP_SHARE);
    if (this.isReady && Math.abs(usedBytes - before) >= step) this.#publish({ usedBytes: BigInt(usedBytes) });
  }

  /** Records that the files of the workspace are deleted, which happens some time after it was disposed of. */
  noteRemoved(): void {
    if (this.#report.stage === ContentStage.DISPOSED) this.#publish({ usedBytes: 0n });
  }

  /** Makes `run` return. */
  forget(): void {
    this.#forgotten = true;
    this.wake();
  }

  wake(): void {
    this.#wake.abort();
  }

  /** Runs until the signal aborts or the workspace is removed. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#forgotten) {
      this.#wake = new AbortController();
      if (await this.#open(signal)) await this.#step(signal);
    }
  }

  /** Makes content usable that was complete before the agent restarted. */
  async #open(signal: AbortSignal): Promise<boolean> {
    const { stage } = this.#report;
    if (this.#opened || this.#order.dispose || stage !== ContentStage.READY) return true;
    try {
      await this.#options.actions.open(this.#order, signal);
      this.#opened = true;
      this.#failures.delete("open");
      this.#options.contentReady(this.#order.podUid);
      return true;
    } catch (error) {
      if (!signal.aborted) await this.#sleep(this.#failed("open", WorkspaceError.from(error)), signal);
      return false;
    }
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { clock, podActive } = this.#options;
    const monotonicMs = clock.monotonicMs();
    const decision = nextWork({
      order: this.#order,
      report: this.#report,
      podActive: podActive(this.#order.podUid),
      gitStatusRead: this.#gitStatusRead,
      notBeforeMs: this.#notBeforeMs,
      monotonicMs,
    });
    if (decision.type === "work") return this.#do(decision.work, signal);
    const untilMs = decision.untilMs === undefined ? undefined : decision.untilMs - monotonicMs;
    await this.#sleep(decision.forPod ? Math.min(POD_POLL_MS, untilMs ?? POD_POLL_MS) : untilMs, signal);
  }

  async #do(work: Work, signal: AbortSignal): Promise<void> {
    const abort = new AbortController();
    this.#current = { work, abort };
    try {
      await withLinkedSignal([signal, abort.signal], (either) => this.#perform(work, either));
      this.#failures.delete(workKey(work));
      this.#notBeforeMs.delete(workKey(work));
    } catch (error) {
      if (signal.aborted || abort.signal.aborted) return;
      await this.#workFailed(work, WorkspaceError.from(error)).catch((err: unknown) =>
        this.#options.log.warn({
          event: "workspace-state-not-written",
          workspace: this.#order.instanceId,
          err,
        }),
      );
    } finally {
      this.#current = undefined;
    }
  }

  async #perform(work: Work, signal: AbortSignal): Promise<void> {
    const { actions, initializeGate, transferGate, log } = this.#options;
    const order = this.#order;
    const { instanceId } = order;
    switch (work.type) {
      case "initialize": {
        const note = (message: string) => this.#publish({ stage: ContentStage.INITIALIZING, message });
        const { source, message } = await initializeGate.run(signal, () =>
          actions.initialize(order, note, signal),
        );
        await this.#save({ stage: ContentStage.READY, source, message });
        log.info({ event: "workspace-content-ready", workspace: instanceId, source });
        this.#opened = true;
        this.#options.contentReady(order.podUid);
        await this.#measure(signal);
        return;
      }
      case "transfer":
        await this.#measure(signal);
        await transferGate.run(signal, () => this.#transfer(order, work.transfer, signal));
        return;
      case "read-git-status": {
        const gitStatus = await actions.readGitStatus(order, signal);
        this.#gitStatusRead = true;
        if (gitStatus !== undefined) await this.#save({ gitStatus });
        return;
      }
      case "dispose":
        await actions.dispose(instanceId, signal);
        this.#publish({ stage: ContentStage.DISPOSED, message: "", transfers: [] });
        log.info({ event: "workspace-disposed", workspace: instanceId });
        this.#options.disposed();
        return;
      default:
        return work satisfies never;
    }
  }

  async #transfer(order: WorkspaceOrder, transfer: TransferOrder, signal: AbortSignal): Promise<void> {
    const { actions, clock, log } = this.#options;
    const { id } = transfer;
    const tries = (transferOf(this.#report, id)?.tries ?? 0) + 1;
    await this.#saveTransfer({ id, state: TransferState.RUNNING, tries });
    const progress = (bytesDone: number) => {
      const nowMs = clock.monotonicMs();
      if (nowMs - this.#progressAtMs < PROGRESS_INTERVAL_MS) return;
      this.#progressAtMs = nowMs;
      this.#publish({ transfers: this.#withTransfer({ id, bytesDone: BigInt(bytesDone) }) });
    };
    const archive = await actions.transfer(order, transfer, progress, signal);
    const bytesDone = archive.sizeBytes;
    await this.#saveTransfer({
      ...{ id, state: TransferState.DONE, archive, bytesDone, tries, message: "" },
    });
    log.info({
      event: "workspace-archive-stored",
      workspace: order.instanceId,
      transfer: id,
      object: archive.object,
      tries,
    });
    await actions.keepArchives(
      order.instanceId,
      this.#order.transfers.map((it) => it.id).filter((it) => it !== id),
    );
  }

  /** Measures the disk use. If that fails, the report omits it. */
  async #measure(signal: AbortSignal): Promise<void> {
    const used = await this.#options.actions.usedBytes(this.#order.instanceId, signal).catch(() => undefined);
    if (used !== undefined) this.#publish({ usedBytes: BigInt(used) });
  }

  async #workFailed(work: Work, error: WorkspaceError): Promise<void> {
    const key = workKey(work);
    const waitMs = this.#failed(key, error);
    this.#notBeforeMs.set(key, this.#options.clock.monotonicMs() + waitMs);
    const message = error.message.slice(0, MESSAGE_LENGTH_MAX);
    switch (work.type) {
      case "initialize": {
        const final = this.#isFinal(key, error);
        if (final) await this.#save({ stage: ContentStage.FAILED, message });
        else
          this.#publish({
            message: `${message}; the next attempt follows in ${Math.ceil(waitMs / 1_000)} s`,
          });
        return;
      }
      case "transfer": {
        const state = error.code === "INVALID" ? "FAILED" : "RETRYING";
        await this.#saveTransfer({ id: work.transfer.id, state: TransferState[state], message });
        return;
      }
      case "read-git-status":
        // A backup in time is more important than the status.
        this.#gitStatusRead = true;
        return;
      case "dispose":
        this.#publish({ message: `deleting the content failed: ${message}` });
        return;
      default:
        return work satisfies never;
    }
  }

  #isFinal(key: string, error: WorkspaceError): boolean {
    // Only the coordinator decides what happens to a workspace that has lost its content.
    if (this.#order.contentComplete) return false;
    if (error.code === "DAMAGED") return (this.#failures.get(key) ?? 0) >= DAMAGE_TRIES_MAX;
    // Only the coordinator ends a start that takes too long. Its clock excludes jumps and the time in which it could
    // not act.
    return !error.retryable;
  }

  /** Counts the failure and returns the time to wait before the next attempt. */
  #failed(key: string, error: WorkspaceError): number {
    const { log, random } = this.#options;
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const { code, message } = error;
    log.warn({
      event: "workspace-work-failed",
      workspace: this.#order.instanceId,
      work: key,
      failures,
      code,
      reason: message,
    });
    // Jitter prevents the workspaces of a fleet from retrying at the same moment.
    return backOffMs(failures, this.#options.backOff) * (0.5 + random() / 2);
  }

  #withTransfer(change: Partial<TransferReport> & { readonly id: string }): TransferReport[] {
    const before = transferOf(this.#report, change.id) ?? TransferReport.fromPartial({});
    const others = this.#report.transfers.filter(({ id }) => id !== change.id);
    return [...others, { ...before, ...change }];
  }

  #saveTransfer(change: Partial<TransferReport> & { readonly id: string }): Promise<void> {
    return this.#save({ transfers: this.#withTransfer(change) });
  }

  /**
   * Publishes the change once it is on disk. A change for which the disk has no room is derived or made again after a
   * restart.
   */
  async #save(change: Partial<WorkspaceReport>): Promise<void> {
    const { records, log } = this.#options;
    try {
      await records.saveReport({ ...this.#report, ...change });
    } catch (error) {
      const { code, message } = WorkspaceError.from(error);
      if (code !== "NO_ROOM") throw error;
      log.warn({ event: "workspace-state-not-on-disk", workspace: this.#order.instanceId, reason: message });
    }
    this.#publish(change);
  }

  #publish(change: Partial<WorkspaceReport>): void {
    this.#report = { ...this.#report, ...change };
    this.#options.changed(this.#report);
  }

  async #sleep(delayMs: number | undefined, signal: AbortSignal): Promise<void> {
    await withLinkedSignal([signal, this.#wake.signal], (either) =>
      pause(this.#options.clock, delayMs ?? LONG_MS, either),
    );
  }
}

// A wait without a deadline ends by `wake`. The limit bounds the effect of a missed wake-up.
const LONG_MS = 60_000;
