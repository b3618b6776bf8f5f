import { createHash } from "node:crypto";
import { messageOf } from "@forage/common/message-of";
import type { GitStatus } from "@forage/proto/content-service-api/initializer";
import {
  type Archive,
  ContentSource,
  ContentStage,
  type SyncResponse,
  type TransferOrder,
  TransferReport,
  TransferState,
  type UploadRequest,
  type UploadResponse,
  type WorkspaceOrder,
  WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import type { NodeTransport, SyncStream } from "./node-transport.ts";

/** The state of one workspace on the node, which survives a restart of the agent. */
interface Held {
  stage: ContentStage;
  message: string;
  readonly transfers: Map<string, TransferReport>;
}

/** The reactions of the fake node, which tests may change at any time. */
export interface Behaviour {
  /** Returns the outcome of an order to fill the content; undefined if nothing happens yet. */
  initialize: (
    order: WorkspaceOrder,
  ) => { readonly stage: ContentStage; readonly message?: string } | undefined;
  /**
   * Returns the outcome of an ordered transfer; undefined if nothing happens yet, and "store" to
   * upload the archive.
   */
  transfer: (
    order: TransferOrder,
  ) => "store" | "lie" | { readonly state: TransferState; readonly message: string } | undefined;
  dispose: (order: WorkspaceOrder) => boolean;
  gitStatus: GitStatus | undefined;
}

/** The workspace component of an agent without a host. The content of a workspace is a text. */
export class FakeWorkspaceNode {
  readonly orders = new Map<string, WorkspaceOrder>();
  readonly held: Map<string, Held>;
  readonly removals: string[] = [];
  readonly behaviour: Behaviour;
  /** The error with which the stream ended. */
  ended: Error | undefined;
  readonly #transport: NodeTransport;
  #stream: SyncStream | undefined;
  readonly #uploading = new Set<string>();

  /** Creates a node. `former` is the same node before a restart. */
  constructor(transport: NodeTransport, former?: FakeWorkspaceNode) {
    this.#transport = transport;
    this.held = former?.held ?? new Map<string, Held>();
    this.behaviour = former?.behaviour ?? {
      initialize: () => ({ stage: ContentStage.READY }),
      transfer: () => "store",
      dispose: () => true,
      gitStatus: undefined,
    };
    this.connect();
  }

  /** Opens the stream with the complete state of the node. */
  connect(): void {
    this.ended = undefined;
    const stream = this.#transport.sync({
      receive: (response) => this.#take(response),
      fail: (error) => {
        if (this.#stream === stream) this.ended = error;
      },
    });
    this.#stream = stream;
    stream.write({ full: true, workspaces: [...this.held.keys()].map((id) => this.#reportOf(id)) });
  }

  disconnect(): void {
    this.#stream?.cancel();
    this.#stream = undefined;
  }

  close(): void {
    this.disconnect();
    this.#transport.close();
  }

  /** Executes all orders again after the behaviour has changed. */
  act(): void {
    for (const order of this.orders.values()) this.#act(order);
  }

  /** Sends a report made by the test. */
  report(report: Parameters<typeof WorkspaceReport.fromPartial>[0]): void {
    this.#stream?.write({ full: false, workspaces: [WorkspaceReport.fromPartial(report)] });
  }

  upload(instanceId: string, transferId: string, object: string, text: string): Promise<UploadResponse> {
    const data = Buffer.from(text);
    const sha256 = createHash("sha256").update(data).digest("hex");
    const parts: UploadRequest["part"][] = [
      { $case: "start", value: { instanceId, transferId, object, sizeBytes: 0n, sha256: "" } },
      { $case: "data", value: data },
      { $case: "end", value: { sizeBytes: BigInt(data.length), sha256 } },
    ];
    return this.#transport.upload(parts.map((part) => ({ part })));
  }

  #take({ orders, removals }: SyncResponse): void {
    for (const order of orders) {
      this.orders.set(order.instanceId, order);
      this.#act(order);
    }
    for (const id of removals) {
      this.removals.push(id);
      this.orders.delete(id);
      this.held.delete(id);
    }
  }

  #act(order: WorkspaceOrder): void {
    const id = order.instanceId;
    const held = this.held.get(id) ?? { stage: ContentStage.UNSPECIFIED, message: "", transfers: new Map() };
    this.held.set(id, held);
    if (order.dispose) {
      if (held.stage !== ContentStage.DISPOSED && this.behaviour.dispose(order)) {
        held.stage = ContentStage.DISPOSED;
        this.#report(id);
      }
      return;
    }
    if (held.stage === ContentStage.UNSPECIFIED || held.stage === ContentStage.INITIALIZING)
      this.#initialize(order, held);
    for (const known of held.transfers.keys())
      if (!order.transfers.some((transfer) => transfer.id === known)) held.transfers.delete(known);
    for (const transfer of order.transfers) this.#transfer(id, transfer, held);
  }

  #initialize(order: WorkspaceOrder, held: Held): void {
    // Complete content is not filled again.
    const outcome = order.contentComplete ? undefined : this.behaviour.initialize(order);
    held.stage = outcome?.stage ?? ContentStage.INITIALIZING;
    held.message = outcome?.message ?? "";
    this.#report(order.instanceId);
  }

  #transfer(id: string, transfer: TransferOrder, held: Held): void {
    const known = held.transfers.get(transfer.id);
    if (known?.state === TransferState.DONE || known?.state === TransferState.FAILED) return;
    const outcome = this.behaviour.transfer(transfer);
    if (outcome === undefined) return;
    if (outcome === "store") {
      void this.#store(id, transfer, held);
      return;
    }
    const archive: Archive = {
      object: transfer.object,
      sizeBytes: 3n,
      sha256: "0".repeat(64),
      createdAt: undefined,
    };
    const report = outcome === "lie" ? { state: TransferState.DONE, archive } : outcome;
    held.transfers.set(transfer.id, TransferReport.fromPartial({ id: transfer.id, ...report }));
    this.#report(id);
  }

  async #store(id: string, transfer: TransferOrder, held: Held): Promise<void> {
    if (this.#uploading.has(transfer.id + id)) return;
    this.#uploading.add(transfer.id + id);
    try {
      const { archive } = await this.upload(id, transfer.id, transfer.object, `content of ${id}`);
      held.transfers.set(
        transfer.id,
        TransferReport.fromPartial({ id: transfer.id, state: TransferState.DONE, archive }),
      );
    } catch (error) {
      const message = messageOf(error);
      held.transfers.set(
        transfer.id,
        TransferReport.fromPartial({ id: transfer.id, state: TransferState.RETRYING, message }),
      );
    } finally {
      this.#uploading.delete(transfer.id + id);
      this.#report(id);
    }
  }

  #report(id: string): void {
    this.#stream?.write({ full: false, workspaces: [this.#reportOf(id)] });
  }

  #reportOf(id: string): WorkspaceReport {
    const held = this.held.get(id);
    return WorkspaceReport.fromPartial({
      instanceId: id,
      stage: held?.stage ?? ContentStage.UNSPECIFIED,
      message: held?.message ?? "",
      source: ContentSource.EMPTY,
      transfers: [...(held?.transfers.values() ?? [])],
      orderVersion: this.orders.get(id)?.version ?? 0n,
      gitStatus: (held?.transfers.size ?? 0) > 0 ? this.behaviour.gitStatus : undefined,
    });
  }
}
