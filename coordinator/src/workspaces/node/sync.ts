import type { Log } from "@forage/common/log";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import {
  WorkspaceOrder as OrderCodec,
  type SyncRequest,
  SyncResponse,
  type WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../../errors.ts";
import { hashMessage } from "../../model/hash.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { Signal } from "../../state/signal.ts";
import type { OrderSource } from "../content/order-source.ts";
import type { WorkspaceView } from "../view.ts";
import type { WorkspaceWriter } from "../writer.ts";
import { applyReport } from "./apply-report.ts";

export interface SyncOptions {
  readonly view: Pick<WorkspaceView, "instance" | "instancesOnNode" | "subscribe">;
  readonly writer: Pick<WorkspaceWriter, "update">;
  readonly orders: OrderSource;
  /** Returns the size limit of an instance's content in bytes; 0 means none. */
  readonly quotaOf: (record: InstanceRecord) => bigint;
  readonly log: Log;
}

/**
 * The most unknown workspaces that a node may report. A host runs some dozens, so the limit only
 * bounds the memory that a faulty agent uses.
 */
const MAX_WORKSPACES = 5_000;
/**
 * The size at which a response is split. An order with an environment of 1 MB still stays below
 * gRPC's limit of 4 MB.
 */
const MAX_RESPONSE_BYTES = 2 * 1024 * 1024;

/** The open stream of a node. */
interface NodeStream {
  readonly node: string;
  /** Aborts when a newer stream of the same node replaces this one. */
  readonly superseded: AbortController;
  readonly wake: Signal;
}

/**
 * Implements the Sync RPC, which exchanges state in both directions. A slow agent receives the
 * newest order of each workspace, and never a queue of old ones.
 */
export class NodeSync {
  readonly #options: SyncOptions;
  readonly #streams = new Map<string, NodeStream>();
  /**
   * The disk use of each instance's content, as last reported. It changes too often to be stored.
   */
  readonly #usedBytes = new Map<string, number>();
  readonly #unsubscribe: () => void;

  constructor(options: SyncOptions) {
    this.#options = options;
    this.#unsubscribe = options.view.subscribe((changes) => {
      for (const { id, after } of changes) if (after === undefined) this.#usedBytes.delete(id);
      const nodes = new Set(
        changes.flatMap(({ before, after }) => [before?.record.node ?? "", after?.record.node ?? ""]),
      );
      for (const node of nodes) this.#streams.get(node)?.wake.raise();
    });
  }

  /** The number of nodes with an open stream. */
  get connected(): number {
    return this.#streams.size;
  }

  /**
   * Returns the disk use of an instance's content in bytes, as last reported by its node; 0 before
   * the first report.
   */
  usedBytesOf(instanceId: string): number {
    return this.#usedBytes.get(instanceId) ?? 0;
  }

  close(): void {
    this.#unsubscribe();
    for (const { superseded } of this.#streams.values()) superseded.abort();
  }

  readonly sync = (requests: AsyncIterable<SyncRequest>, context: CallContext): AsyncIterable<SyncResponse> =>
    this.#serve(requests, context);

  async *#serve(requests: AsyncIterable<SyncRequest>, context: CallContext): AsyncGenerator<SyncResponse> {
    const node = nodeOf(context);
    const stream: NodeStream = { node, superseded: new AbortController(), wake: new Signal() };
    this.#streams.get(node)?.superseded.abort();
    this.#streams.set(node, stream);
    const signal = AbortSignal.any([context.signal, stream.superseded.signal]);
    const known = new Set<string>();
    const reading = this.#read(requests, stream, known).catch((error: unknown) =>
      stream.superseded.abort(error),
    );
    try {
      yield* this.#send(stream, known, signal);
      if (stream.superseded.signal.aborted && !context.signal.aborted)
        throw failureOf(stream.superseded.signal.reason);
    } finally {
      if (this.#streams.get(node) === stream) this.#streams.delete(node);
      void reading;
    }
  }

  async *#send(
    { node, wake }: NodeStream,
    known: Set<string>,
    signal: AbortSignal,
  ): AsyncGenerator<SyncResponse> {
    const sent = new Map<string, string>();
    let full = true;
    while (!signal.aborted) {
      const changed = this.#changedOrders(node, sent);
      const removals = this.#removals(known, sent);
      if (full || changed.length > 0 || removals.length > 0) yield* splitBySize(changed, removals, full);
      full = false;
      if (signal.aborted) return;
      await wake.wait(signal);
    }
  }

  #changedOrders(node: string, sent: Map<string, string>): WorkspaceOrder[] {
    const { view, orders } = this.#options;
    return view.instancesOnNode(node).flatMap(({ record: { id } }) => {
      const order = orders.orderOf(node, id);
      if (order === undefined) return [];
      // Only a hash is kept, because the order holds credentials.
      const hash = hashMessage(OrderCodec, { ...order, version: 0n });
      if (sent.get(id) === hash) return [];
      sent.set(id, hash);
      return [order];
    });
  }

  /**
   * Returns instances that the node has and that have no record, and forgets that the node has
   * them.
   */
  #removals(known: Set<string>, sent: Map<string, string>): string[] {
    const { view } = this.#options;
    const gone = [...new Set([...known, ...sent.keys()])].filter((id) => view.instance(id) === undefined);
    for (const id of gone) {
      known.delete(id);
      sent.delete(id);
    }
    return gone;
  }

  async #read(requests: AsyncIterable<SyncRequest>, stream: NodeStream, known: Set<string>): Promise<void> {
    for await (const { workspaces } of requests) {
      for (const report of workspaces) {
        if (this.#options.view.instance(report.instanceId) === undefined) {
          if (known.size >= MAX_WORKSPACES)
            throw new CoordinatorError(
              "RESOURCE_EXHAUSTED",
              `node ${stream.node} reports more than ${MAX_WORKSPACES} unknown workspaces`,
            );
          known.add(report.instanceId);
          stream.wake.raise();
        } else await this.#report(stream, report);
      }
    }
    // The agent has closed its side of the stream.
    stream.superseded.abort();
  }

  /**
   * Applies a report if the content belongs to the node. Reports of a replaced stream are ignored:
   * the newer stream began with later state.
   */
  async #report({ node, superseded }: NodeStream, report: WorkspaceReport): Promise<void> {
    const { writer, log, quotaOf } = this.#options;
    try {
      const { id, node: owner } = await writer.update(report.instanceId, (record) =>
        record.node === node && !superseded.signal.aborted
          ? applyReport(record, report, quotaOf(record))
          : record,
      );
      if (owner === node) this.#usedBytes.set(id, Number(report.usedBytes));
    } catch (error) {
      // The record may have been removed since.
      if (!(error instanceof CoordinatorError) || error.code !== "NOT_FOUND") throw error;
      log.debug({ event: "workspace-report-ignored", node, workspace: report.instanceId });
    }
  }
}

/** Splits a response by size. The first message is marked as full; the others follow as changes. */
function* splitBySize(
  orders: readonly WorkspaceOrder[],
  removals: readonly string[],
  full: boolean,
): Generator<SyncResponse> {
  let part: WorkspaceOrder[] = [];
  let bytes = 0;
  const parts: WorkspaceOrder[][] = [];
  for (const order of orders) {
    const size = OrderCodec.encode(order).finish().byteLength;
    if (bytes + size > MAX_RESPONSE_BYTES && part.length > 0) {
      parts.push(part);
      [part, bytes] = [[], 0];
    }
    part.push(order);
    bytes += size;
  }
  parts.push(part);
  for (const [index, each] of parts.entries())
    yield SyncResponse.fromPartial({
      full: full && index === 0,
      orders: each,
      removals: index === 0 ? [...removals] : [],
    });
}

function nodeOf({ caller }: CallContext): string {
  if (caller.type !== "node")
    throw new CoordinatorError("PERMISSION_DENIED", "this method is for nodes with a certificate only");
  return caller.nodeId;
}

function failureOf(reason: unknown): unknown {
  if (reason instanceof CoordinatorError) return reason;
  return new CoordinatorError(
    "ABORTED",
    "another stream of the same node replaced this one, or the node ended it",
  );
}
