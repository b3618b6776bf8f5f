import { createHash } from "node:crypto";
import {
  type Archive,
  type DownloadRequest,
  type DownloadResponse,
  type SyncRequest,
  SyncResponse,
  type TransferReport,
  type UploadRequest,
  type UploadResponse,
  WorkspaceNodeServiceClient,
  WorkspaceNodeServiceService,
  type WorkspaceOrder,
  type WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import {
  credentials,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";

const CHUNK_BYTES = 100_000;

/** A coordinator's part of workspaces in this process: orders, reports and archives in memory. */
export class WorkspaceStore {
  readonly #server = new Server();
  readonly #streams = new Set<ServerDuplexStream<SyncRequest, SyncResponse>>();
  readonly orders = new Map<string, WorkspaceOrder>();
  readonly reports = new Map<string, WorkspaceReport>();
  /** All reports in order of arrival. */
  readonly history: WorkspaceReport[] = [];
  readonly archives = new Map<string, Buffer>();
  readonly uploads: string[] = [];
  /** The total bytes of all uploads. */
  received = 0;
  /** Functions that decide, by the bytes received, when the next uploads fail, in order. */
  readonly uploadFaults: ((received: number) => boolean)[] = [];
  /** Byte offsets at which the next downloads break, in order. */
  readonly downloadFaults: number[] = [];
  #port = 0;

  async start(): Promise<void> {
    this.#server.addService(WorkspaceNodeServiceService, {
      sync: (call: ServerDuplexStream<SyncRequest, SyncResponse>) => this.#sync(call),
      upload: (
        call: ServerReadableStream<UploadRequest, UploadResponse>,
        answer: sendUnaryData<UploadResponse>,
      ) => this.#upload(call, answer),
      download: (call: ServerWritableStream<DownloadRequest, DownloadResponse>) => void this.#download(call),
    });
    this.#port = await new Promise<number>((resolve, reject) =>
      this.#server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      ),
    );
  }

  readonly connect = async (): Promise<WorkspaceNodeServiceClient> =>
    new WorkspaceNodeServiceClient(`127.0.0.1:${this.#port}`, credentials.createInsecure(), {
      "grpc.enable_retries": 0,
      "grpc.use_local_subchannel_pool": 1,
    });

  /** Sends a new or changed order to all agents. */
  order(order: WorkspaceOrder): void {
    const before = this.orders.get(order.instanceId);
    const next = { ...order, version: (before?.version ?? 0n) + 1n };
    this.orders.set(order.instanceId, next);
    for (const call of this.#streams) call.write(SyncResponse.fromPartial({ orders: [next] }));
  }

  change(id: string, change: Partial<WorkspaceOrder>): void {
    const order = this.orders.get(id);
    if (order !== undefined) this.order({ ...order, ...change });
  }

  remove(id: string): void {
    this.orders.delete(id);
    for (const call of this.#streams) call.write(SyncResponse.fromPartial({ removals: [id] }));
  }

  transfer(instanceId: string, transferId: string): TransferReport | undefined {
    return this.reports.get(instanceId)?.transfers.find(({ id }) => id === transferId);
  }

  get port(): number {
    return this.#port;
  }

  /** Breaks all streams. */
  disconnect(): void {
    for (const call of this.#streams) call.emit("error", { code: status.UNAVAILABLE, details: "gone" });
    this.#streams.clear();
  }

  close(): void {
    this.#server.forceShutdown();
  }

  #sync(call: ServerDuplexStream<SyncRequest, SyncResponse>): void {
    this.#streams.add(call);
    call.write(SyncResponse.fromPartial({ full: true, orders: [...this.orders.values()] }));
    call.on("data", ({ workspaces }: SyncRequest) => {
      for (const report of workspaces) {
        this.reports.set(report.instanceId, report);
        this.history.push(report);
      }
    });
    const ended = () => this.#streams.delete(call);
    for (const event of ["end", "close", "cancelled", "error"]) call.on(event, ended);
  }

  #upload(
    call: ServerReadableStream<UploadRequest, UploadResponse>,
    answer: sendUnaryData<UploadResponse>,
  ): void {
    const chunks: Buffer[] = [];
    let received = 0;
    let object = "";
    let done = false;
    const fault = this.uploadFaults.shift();
    const reply = (error: { code: number; details: string } | null, value?: UploadResponse) => {
      if (done) return;
      done = true;
      answer(error, value);
    };
    call.on("data", ({ part }: UploadRequest) => {
      if (part?.$case === "start") {
        object = part.value.object;
        this.uploads.push(object);
        const present = this.archives.get(object);
        if (present !== undefined && part.value.sha256 === digest(present))
          reply(null, { archive: archiveOf(object, present), existed: true });
      }
      if (part?.$case === "data") {
        chunks.push(Buffer.from(part.value));
        received += part.value.byteLength;
        this.received += part.value.byteLength;
      }
      if (fault?.(received)) reply({ code: status.UNAVAILABLE, details: "the store is away" });
      if (part?.$case === "end") {
        const bytes = Buffer.concat(chunks);
        const { sha256, sizeBytes } = part.value;
        if (sha256 !== digest(bytes) || Number(sizeBytes) !== bytes.byteLength)
          return reply({ code: status.DATA_LOSS, details: "the digest differs" });
        if (!done) this.archives.set(object, bytes);
        reply(null, { archive: archiveOf(object, bytes), existed: false });
      }
    });
    call.on("error", () => undefined);
  }

  async #download(call: ServerWritableStream<DownloadRequest, DownloadResponse>): Promise<void> {
    const { object, offsetBytes } = call.request;
    const bytes = this.archives.get(object);
    const end = this.downloadFaults.shift() ?? Number.POSITIVE_INFINITY;
    if (bytes === undefined) {
      call.emit("error", { code: status.NOT_FOUND, details: `no object ${object}` });
      return;
    }
    for (let at = Number(offsetBytes); at < bytes.byteLength; at += CHUNK_BYTES) {
      if (at >= end) {
        call.emit("error", { code: status.UNAVAILABLE, details: "the store went away" });
        return;
      }
      if (!call.write({ data: bytes.subarray(at, at + CHUNK_BYTES) }))
        await new Promise((resolve) => call.once("drain", resolve));
    }
    call.end();
  }
}

export function archiveOf(object: string, bytes: Buffer): Archive {
  return { object, sizeBytes: BigInt(bytes.byteLength), sha256: digest(bytes), createdAt: undefined };
}

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
