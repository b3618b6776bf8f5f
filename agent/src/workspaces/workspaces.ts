import type { BackOff } from "@forage/common/back-off";
import { Semaphore } from "@forage/common/semaphore";
import {
  ContentStage,
  type SyncResponse,
  type WorkspaceOrder,
  type WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import type { Clock } from "../clock.ts";
import { DiskUseWatch } from "../volumes/disk-use-watch.ts";
import { VolumeError, type VolumeProvider } from "../volumes/volumes.ts";
import type { ContentActions } from "./content-actions.ts";
import { Remains } from "./remains.ts";
import { WORK_BACK_OFF, Workspace, type WorkspaceOptions } from "./workspace.ts";
import { WorkspaceError } from "./workspace-error.ts";
import { isInstanceId } from "./workspace-layout.ts";
import type { WorkspaceRecords } from "./workspace-records.ts";

export interface WorkspacesOptions {
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly records: WorkspaceRecords;
  readonly actions: ContentActions;
  /** The back-off between attempts of the same work. Default: 1 s to 60 s. */
  readonly backOff?: BackOff;
  readonly log: WorkspaceOptions["log"];
}

/** The functions of this host's pods that workspaces need. */
export interface WorkspacePods {
  /** Whether a container of the pod may still write. */
  active(podUid: string): boolean;
  /** Ends the wait of a pod for its volumes. */
  retryStart(podUid: string): void;
}

// Each transfer keeps a core and the disk busy. More concurrent transfers would only finish later and disturb running
// pods.
const TRANSFERS_AT_ONCE = 5;
// Initializers mostly wait for the network.
const INITIALIZATIONS_AT_ONCE = 8;
/**
 * The limit on workspaces of this host, above the number of pods that a node runs. It protects the disk from a faulty
 * coordinator.
 */
const WORKSPACES_MAX = 2_000;

/** Manages all workspaces of this host and provides their volumes. */
export class Workspaces implements VolumeProvider {
  readonly #options: WorkspacesOptions;
  readonly #workspaces = new Map<string, Workspace>();
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #initializeGate = new Semaphore(INITIALIZATIONS_AT_ONCE);
  readonly #use: DiskUseWatch;
  readonly #remains: Remains;
  readonly #transferGate = new Semaphore(TRANSFERS_AT_ONCE);
  /** Pods whose volume was requested before the content was ready. */
  readonly #waiting = new Set<string>();
  /** Workspaces whose newest order could not be saved because the disk is full. */
  readonly #unsaved = new Set<string>();
  #pods: WorkspacePods | undefined;
  #changed: (id: string) => void = () => undefined;

  private constructor(options: WorkspacesOptions) {
    this.#options = options;
    const { clock, actions, log } = options;
    this.#remains = new Remains({
      ...{ clock, log },
      list: () => actions.remains(),
      remove: (id, signal) => actions.removeRemains(id, signal),
      removed: (id) => this.#workspaces.get(id)?.noteRemoved(),
    });
    this.#use = new DiskUseWatch({
      clock,
      measure: async (id, signal) =>
        this.#workspaces.get(id)?.isReady ? await actions.usedBytes(id, signal) : 0,
      onError: (workspace, err) => log.warn({ event: "workspace-content-not-measured", workspace, err }),
    });
  }

  /** Opens the workspaces that are on disk. No work is done before `start`. */
  static async open(options: WorkspacesOptions): Promise<Workspaces> {
    const workspaces = new Workspaces(options);
    for (const [id, record] of await options.records.load()) {
      workspaces.#workspaces.set(id, new Workspace(workspaces.#workspaceParts(), record));
    }
    return workspaces;
  }

  /** Starts the work. From now on `pods` must include all pods of the host. */
  start(pods: WorkspacePods): void {
    this.#pods = pods;
    this.#track(this.#remains.run(this.#closing.signal), (err) =>
      this.#options.log.warn({ event: "workspace-remains-stopped", err }),
    );
    for (const workspace of this.#workspaces.values()) this.#run(workspace);
  }

  /** Sets the receiver of changes. It receives an instance id. */
  onChange(changed: (id: string) => void): void {
    this.#changed = changed;
  }

  get ids(): readonly string[] {
    return [...this.#workspaces.keys()];
  }

  reportOf(id: string): WorkspaceReport | undefined {
    return this.#workspaces.get(id)?.report;
  }

  /** Applies the coordinator's orders. They are on disk when this resolves, unless the disk is full. */
  async apply({ orders, removals }: SyncResponse): Promise<void> {
    for (const id of this.#unsaved) await this.#saveOrder(this.#workspaces.get(id)?.order);
    for (const order of orders) await this.#assign(order);
    for (const id of removals) this.#forget(id);
  }

  async prepare(id: string, podUid: string): Promise<string> {
    const workspace = this.#workspaces.get(id);
    const { stage, message } = workspace?.report ?? {};
    if (workspace?.isReady && workspace.order.podUid === podUid) return this.#options.actions.contentPath(id);
    this.#waiting.add(podUid);
    if (workspace === undefined)
      throw new VolumeError("UNAVAILABLE", `workspace ${id}: the coordinator has not sent its content yet`);
    if (workspace.order.podUid !== podUid)
      throw new VolumeError("UNAVAILABLE", `workspace ${id} belongs to another pod`);
    if (stage === ContentStage.FAILED)
      throw new VolumeError("UNAVAILABLE", `workspace ${id}: the content failed: ${message}`);
    throw new VolumeError(
      "UNAVAILABLE",
      `workspace ${id}: the content is not ready${message ? `: ${message}` : ""}`,
    );
  }

  /** Stops all work. It continues with the next start of the agent. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#use.close();
    await Promise.all(this.#running);
  }

  async #assign(order: WorkspaceOrder): Promise<void> {
    const { records, log } = this.#options;
    const id = order.instanceId;
    if (!isInstanceId(id)) return log.warn({ event: "workspace-id-refused", workspace: id });
    const known = this.#workspaces.get(id);
    if (known === undefined && this.#workspaces.size >= WORKSPACES_MAX)
      return log.warn({ event: "too-many-workspaces", workspace: id, limit: WORKSPACES_MAX });
    const report = known?.report ?? (await records.readReport(id));
    const isDisposed = report.stage === ContentStage.DISPOSED;
    // The directory without a record still has to be deleted.
    if (!isDisposed) await this.#saveOrder(order);
    if (known !== undefined) return known.assign(order);
    const workspace = new Workspace(this.#workspaceParts(), { order, report });
    this.#workspaces.set(id, workspace);
    this.#run(workspace);
    this.#changed(id);
  }

  /**
   * Saves an order. If the disk is full, the order is followed nevertheless, because saving and deleting content frees
   * the disk. After a restart the coordinator sends the order again, and all its work can be repeated.
   */
  async #saveOrder(order: WorkspaceOrder | undefined): Promise<void> {
    if (order === undefined) return;
    const { records, log } = this.#options;
    const id = order.instanceId;
    try {
      await records.saveOrder(order);
      this.#unsaved.delete(id);
    } catch (error) {
      const { code, message } = WorkspaceError.from(error);
      if (code !== "NO_ROOM") throw error;
      this.#unsaved.add(id);
      log.warn({ event: "workspace-order-not-on-disk", workspace: id, reason: message });
    }
  }

  /** Forgets the workspace. Content that was not disposed of stays on the disk. */
  #forget(id: string): void {
    const workspace = this.#workspaces.get(id);
    if (workspace === undefined) return;
    if (workspace.report.stage !== ContentStage.DISPOSED) {
      this.#options.log.warn({ event: "workspace-content-kept-without-record", workspace: id });
      return;
    }
    workspace.forget();
    this.#use.unwatch(id);
    this.#workspaces.delete(id);
    this.#unsaved.delete(id);
  }

  #run(workspace: Workspace): void {
    if (this.#pods === undefined) return;
    const { instanceId } = workspace.order;
    // Quotas that images enforce are watched too, because a warning has to precede failing programs.
    this.#use.watch({
      ...{ path: instanceId, limitBytes: Number.POSITIVE_INFINITY, exceeded: () => undefined },
      measured: (usedBytes) => workspace.noteUse(usedBytes),
    });
    this.#track(workspace.run(this.#closing.signal), (err) =>
      this.#options.log.warn({ event: "workspace-stopped", workspace: instanceId, err }),
    );
  }

  #track(work: Promise<void>, failed: (error: unknown) => void): void {
    const running = work.catch(failed).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #workspaceParts(): WorkspaceOptions {
    const { clock, random, records, actions, log } = this.#options;
    return {
      ...{ clock, random, records, actions, log },
      backOff: this.#options.backOff ?? WORK_BACK_OFF,
      initializeGate: this.#initializeGate,
      transferGate: this.#transferGate,
      podActive: (podUid) => this.#pods?.active(podUid) ?? true,
      changed: ({ instanceId }) => this.#changed(instanceId),
      disposed: () => this.#remains.wake(),
      contentReady: (podUid) => {
        if (this.#waiting.delete(podUid)) this.#pods?.retryStart(podUid);
      },
    };
  }
}
