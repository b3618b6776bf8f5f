import { type BackOff, backOffMs } from "@forage/common/back-off";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type { ClaimRef, Hello, NodeReport, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import type { EventRecorder } from "../model/event.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { type Store, StoreError } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { forgetClaims, isRemoval } from "./claims-removed.ts";
import { recordNodeReport } from "./node-report.ts";
import { recordHello, recordStatuses, vanishedPods } from "./reports.ts";

/** The options that the queues of all agents share. */
export interface ReportQueueOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  /** The history check. Nothing is written once a rollback of the store was detected. */
  readonly history?: { readonly refusal: string | undefined };
}

/** One stream of an agent. */
export interface ReportSource {
  readonly node: string;
  readonly hello: Hello;
  /** Reports whether the node has a newer stream, whose reports must not be overwritten. Default: never. */
  readonly superseded?: () => boolean;
  /** Called with the reason when a report is rejected because its pod is bound to another node. */
  readonly refused?: ((why: string) => void) | undefined;
}

/**
 * The delay of a retry after a failed write, doubling from the first value to the second. It is short, so that writing
 * resumes soon after space was freed.
 */
const RETRY: BackOff = { baseMs: 250, capMs: 5_000 };

/**
 * Stores the reports of one agent in the background. The stream is read, and its heartbeats count, however slow or full the
 * disk is. The queue holds the newest status of each of the node's pods, one node report, and the removed claims, so its
 * size is limited by the node's. Reports that are not written when the stream ends are sent again with the next hello
 * message.
 */
export class ReportQueue {
  readonly #options: ReportQueueOptions;
  readonly #node: string;
  readonly #isSuperseded: (() => boolean) | undefined;
  readonly #onRefused: ((why: string) => void) | undefined;
  /** The part of the hello message that is kept. The stream lasts for weeks, and the first report may have 100 kB. */
  readonly #agent: Pick<Hello, "agentVersion" | "bootId">;
  /** Set by `start`. */
  #started: { readonly signal: AbortSignal; readonly fail: (error: unknown) => void } | undefined;
  #isDue = false;
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();
  #hello: { readonly pods: readonly PodStatus[]; readonly vanished: ReadonlySet<string> } | undefined;
  #report: NodeReport | undefined;
  readonly #statuses = new Map<string, PodStatus>();
  /** Is created when it is first used, because most nodes never remove a claim. */
  #claims: Map<string, ClaimRef> | undefined;
  #failures = 0;

  constructor(options: ReportQueueOptions, { node, hello, superseded, refused }: ReportSource) {
    this.#options = options;
    this.#node = node;
    this.#isSuperseded = superseded;
    this.#onRefused = refused;
    const { agentVersion, bootId } = hello;
    this.#agent = { agentVersion, bootId };
    this.#report = hello.node;
    const pods = hello.pods.filter((status) => this.#isBoundHere(status));
    const vanished = new Set(vanishedPods(node, hello.pods, options.state).map(({ record }) => record.uid));
    this.#hello = { pods, vanished };
  }

  /** The number of reports that could not be written at the last attempt. */
  get unwritten(): number {
    if (this.#failures === 0) return 0;
    const { size } = this.#statuses;
    return (
      size +
      (this.#claims?.size ?? 0) +
      (this.#report === undefined ? 0 : 1) +
      (this.#hello?.pods.length ?? 0)
    );
  }

  putStatuses(statuses: readonly PodStatus[]): void {
    for (const status of statuses) if (this.#isBoundHere(status)) this.#statuses.set(status.uid, status);
    this.#wake();
  }

  putReport(report: NodeReport | undefined): void {
    this.#report = report;
    this.#wake();
  }

  putClaimsRemoved(claims: readonly ClaimRef[]): void {
    this.#claims ??= new Map();
    for (const claim of claims)
      if (isRemoval(this.#node, claim, this.#options.state))
        this.#claims.set(`${claim.namespace}/${claim.name}`, claim);
    this.#wake();
  }

  /** Writes until the signal aborts. Calls `fail` if the node was removed, which ends the stream. */
  start(signal: AbortSignal, fail: (error: unknown) => void): void {
    this.#started = { signal, fail };
    this.#wake();
  }

  /** Resolves when nothing is being written. */
  idle(): Promise<void> {
    return this.#writing;
  }

  /** Writes the remaining reports, without retries, once nothing is being written. */
  async flush(): Promise<void> {
    await this.idle();
    await this.#writeAll().catch((error: unknown) => this.#noteFailure(error));
  }

  get #superseded(): boolean {
    return this.#isSuperseded?.() ?? false;
  }

  /**
   * Writes what is due, together with what arrives at the same time. A write that is in progress continues with it. While
   * nothing is due, no promise is pending: it would take a kilobyte for each agent.
   */
  #wake(): void {
    this.#isDue = true;
    if (this.#isWriting || this.#started === undefined) return;
    const { signal, fail } = this.#started;
    this.#isWriting = true;
    this.#writing = Promise.resolve()
      .then(() => this.#writeWhileDue(signal))
      .catch(fail);
  }

  async #writeWhileDue(signal: AbortSignal): Promise<void> {
    try {
      while (this.#isDue && !signal.aborted && this.#options.history?.refusal === undefined) {
        this.#isDue = false;
        await this.#tryToWrite(signal);
      }
    } finally {
      this.#isWriting = false;
    }
  }

  async #tryToWrite(signal: AbortSignal): Promise<void> {
    try {
      await this.#writeAll();
      this.#noteSuccess();
    } catch (error) {
      if (this.#options.history?.refusal !== undefined) return;
      if (!(error instanceof StoreError)) throw error;
      this.#noteFailure(error);
      if (!error.retryable) await this.#writeOneByOne();
      await this.#pause(backOffMs(this.#failures, RETRY), signal);
      this.#wake();
    }
  }

  async #writeAll(): Promise<void> {
    const node = this.#node;
    if (this.#superseded) return;
    const report = this.#report;
    if (report !== undefined) {
      await recordNodeReport(node, { ...this.#agent, node: report }, this.#options);
      if (this.#superseded) return;
      if (this.#report === report) this.#report = undefined;
    }
    const first = this.#hello;
    if (first !== undefined) {
      await recordHello(node, first.pods, this.#options, first.vanished);
      if (this.#superseded) return;
      this.#hello = undefined;
    }
    const statuses = [...this.#statuses.values()];
    if (statuses.length > 0) await recordStatuses(node, statuses, this.#options);
    for (const status of statuses)
      if (this.#statuses.get(status.uid) === status) this.#statuses.delete(status.uid);
    const claims = [...(this.#claims ?? [])];
    await forgetClaims(
      node,
      claims.map(([, claim]) => claim),
      this.#options,
    );
    for (const [key, claim] of claims) if (this.#claims?.get(key) === claim) this.#claims.delete(key);
  }

  /** Writes the reports one by one, so that one status that the store rejects doesn't affect the others. */
  async #writeOneByOne(): Promise<void> {
    const node = this.#node;
    const statuses = [...(this.#hello?.pods ?? []), ...this.#statuses.values()];
    for (const status of statuses) {
      if (this.#superseded) return;
      try {
        await recordStatuses(node, [status], this.#options);
      } catch (error) {
        if (!(error instanceof StoreError) || !isRefusal(error)) continue;
        this.#options.log.error({ event: "pod-status-refused", node, pod: status.name, err: error });
        this.#drop(status);
      }
    }
  }

  #drop(status: PodStatus): void {
    if (this.#statuses.get(status.uid) === status) this.#statuses.delete(status.uid);
    if (this.#hello === undefined) return;
    this.#hello = { ...this.#hello, pods: this.#hello.pods.filter((it) => it !== status) };
  }

  #noteFailure(error: unknown): void {
    const { log, events, state } = this.#options;
    this.#failures++;
    for (const uid of this.#statuses.keys())
      if (state.podByUid(uid) === undefined) this.#statuses.delete(uid);
    if (this.#failures > 1) return;
    log.warn({ event: "reports-not-written", node: this.#node, err: error });
    const why = messageOf(error);
    const message = `reports of the node can't be stored: ${why}; the newest ones are kept in memory and stored as soon as possible`;
    events.record({ ...this.#of(), type: "Warning", reason: "ReportsNotStored", message });
  }

  #noteSuccess(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#options.log.info({ event: "reports-written", node: this.#node });
    const message = "reports of the node are stored again";
    this.#options.events.record({ ...this.#of(), type: "Normal", reason: "ReportsStored", message });
  }

  #of() {
    const node = this.#node;
    return { namespace: "", kind: "node", name: node, node } as const;
  }

  /**
   * Reports whether the pod is bound to the node. A report about a pod that is gone, or not bound again after a restore, is
   * no fault of the node.
   */
  #isBoundHere({ uid }: PodStatus): boolean {
    const node = this.#node;
    const record = this.#options.state.podByUid(uid)?.record;
    if (record?.node && record.node !== node)
      this.#onRefused?.(
        `pod ${record.namespace}/${record.name} is bound to node ${record.node}: the report is ignored`,
      );
    return record?.node === node;
  }

  #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.#options.clock.schedule(delayMs, done);
      signal.addEventListener("abort", done, { once: true });
    });
  }
}

/** Reports whether the store rejects the write permanently. */
function isRefusal({ code }: StoreError): boolean {
  return code === "TOO_LARGE" || code === "INVALID_ARGUMENT";
}
