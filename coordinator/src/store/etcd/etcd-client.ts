import {
  Compare_CompareResult,
  Compare_CompareTarget,
  KVClient,
  LeaseClient,
  MaintenanceClient,
  type RequestOp,
  type TxnRequest,
  type TxnResponse,
  WatchClient,
  WatchRequest,
  type WatchResponse,
} from "@forage/proto/etcdserverpb/rpc";
import type { KeyValue } from "@forage/proto/mvccpb/kv";
import { type CallOptions, type ChannelCredentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type {
  Etcd,
  EtcdCompare,
  EtcdMember,
  EtcdOp,
  EtcdQuery,
  EtcdRange,
  EtcdRecord,
  EtcdTxn,
  EtcdTxnResult,
} from "./etcd.ts";
import { EtcdError } from "./etcd-error.ts";

/** The limit of one call. A member that needs longer is paused or disconnected, and another one may respond. */
const CALL_LIMIT_MS = 3_000;

/** The limit of a renewal at one member. A lease of 3 s can then be renewed at another member before it expires. */
export const LEASE_CALL_LIMIT_MS = 1_000;

/** The limit of a response. A page of the largest possible records is 250 MiB; etcd doesn't limit responses. */
const ANSWER_BYTES_MAX = 512 * 1024 * 1024;

const CHANNEL_OPTIONS = {
  "grpc.max_receive_message_length": ANSWER_BYTES_MAX,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // etcd closes connections that are probed more often than every 5 s.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
};

export interface EtcdEndpoint {
  /** The URL from the configuration, for messages. */
  readonly url: string;
  /** The address as HOST:PORT. */
  readonly address: string;
  readonly credentials: ChannelCredentials;
}

export interface EtcdClientOptions {
  /** The members, at least one. */
  readonly endpoints: readonly EtcdEndpoint[];
  readonly nowMs: () => number;
}

interface Member {
  readonly url: string;
  readonly kv: KVClient;
  readonly watch: WatchClient;
  readonly lease: LeaseClient;
  readonly maintenance: MaintenanceClient;
}

type Unary<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: Partial<CallOptions>,
  callback: (error: ServiceError | null, response: Response) => void,
) => unknown;

/**
 * Calls one member until a call fails, and then the next one. It doesn't repeat calls, because only the caller knows which
 * of them may be repeated.
 */
export class EtcdClient implements Etcd {
  readonly #members: readonly Member[];
  readonly #nowMs: () => number;
  readonly #metadata = new Metadata();
  #at = 0;

  constructor({ endpoints, nowMs }: EtcdClientOptions) {
    this.#nowMs = nowMs;
    // Makes calls to a member without a leader fail at once, so that the next member is called.
    this.#metadata.set("hasleader", "true");
    this.#members = endpoints.map(({ url, address, credentials }) => ({
      url,
      kv: new KVClient(address, credentials, CHANNEL_OPTIONS),
      watch: new WatchClient(address, credentials, CHANNEL_OPTIONS),
      lease: new LeaseClient(address, credentials, CHANNEL_OPTIONS),
      maintenance: new MaintenanceClient(address, credentials, CHANNEL_OPTIONS),
    }));
  }

  async range({ from, to, limit = 0, at = 0n }: EtcdQuery): Promise<EtcdRange> {
    const request = {
      key: Buffer.from(from),
      rangeEnd: Buffer.from(to ?? ""),
      limit: BigInt(limit),
      revision: at,
      serializable: false,
      keysOnly: false,
      countOnly: false,
    };
    const { kvs, more, header } = await this.#call((member) =>
      this.#unary(member, member.kv.range.bind(member.kv), request),
    );
    return { records: kvs.map(toRecord), more, revision: header?.revision ?? 0n };
  }

  async txn(txn: EtcdTxn): Promise<EtcdTxnResult> {
    const response = await this.#call((member) =>
      this.#unary(member, member.kv.txn.bind(member.kv), toRequest(txn)),
    );
    const { succeeded, header } = response;
    return { succeeded, revision: header?.revision ?? 0n, found: succeeded ? [] : foundIn(response) };
  }

  async compact(revision: bigint): Promise<void> {
    await this.#call((member) => this.#unary(member, member.kv.compact.bind(member.kv), { revision }));
  }

  async grantLease(ttlSeconds: number): Promise<bigint> {
    const request = { TTL: BigInt(ttlSeconds), ID: 0n };
    const { ID } = await this.#call((member) =>
      this.#unary(member, member.lease.leaseGrant.bind(member.lease), request),
    );
    return ID;
  }

  keepLeaseAlive(id: bigint): Promise<boolean> {
    return this.#call(
      ({ lease, url }) =>
        new Promise((resolve, reject) => {
          const stream = lease.leaseKeepAlive(this.#metadata, this.#options(LEASE_CALL_LIMIT_MS));
          stream.once("data", ({ TTL }: { readonly TTL: bigint }) => {
            resolve(TTL > 0n);
            stream.cancel();
          });
          stream.on("error", (error) => reject(EtcdError.from(error, url)));
          stream.once("end", () => reject(new EtcdError("UNAVAILABLE", `${url}: the stream ended`)));
          stream.write({ ID: id });
        }),
    );
  }

  async revokeLease(id: bigint): Promise<void> {
    try {
      const revoke = (member: Member) =>
        this.#unary(member, member.lease.leaseRevoke.bind(member.lease), { ID: id });
      await this.#call(revoke);
    } catch (error) {
      if (!(error instanceof EtcdError && error.code === "REJECTED")) throw error;
    }
  }

  changed(key: string, after: bigint, signal: AbortSignal): Promise<void> {
    return this.#call(
      ({ watch, url }) =>
        new Promise((resolve, reject) => {
          const stream = watch.watch(this.#metadata);
          const settle = (run: () => void): void => {
            signal.removeEventListener("abort", abort);
            run();
            stream.cancel();
          };
          const abort = (): void => settle(resolve);
          signal.addEventListener("abort", abort, { once: true });
          stream.on("data", ({ events, canceled }: WatchResponse) => {
            if (events.length > 0 || canceled) settle(resolve);
          });
          stream.on("error", (error) => settle(() => reject(EtcdError.from(error, url))));
          stream.once("end", () => settle(resolve));
          stream.write(watchFrom(key, after + 1n));
          if (signal.aborted) abort();
        }),
    );
  }

  members(): Promise<EtcdMember[]> {
    return Promise.all(this.#members.map((member) => this.#describe(member)));
  }

  close(): void {
    for (const { kv, watch, lease, maintenance } of this.#members)
      for (const client of [kv, watch, lease, maintenance]) client.close();
  }

  async #describe(member: Member): Promise<EtcdMember> {
    const { maintenance, url: endpoint } = member;
    try {
      const { version, header } = await this.#unary(member, maintenance.status.bind(maintenance), {});
      return { type: "up", endpoint, version, clusterId: header?.clusterId ?? 0n };
    } catch (error) {
      return { type: "down", endpoint, reason: EtcdError.from(error, endpoint).message };
    }
  }

  async #call<T>(call: (member: Member) => Promise<T>): Promise<T> {
    const at = this.#at;
    const member = this.#members[at];
    if (member === undefined) throw new EtcdError("REJECTED", "etcd has no endpoints");
    try {
      return await call(member);
    } catch (error) {
      const failure = EtcdError.from(error, member.url);
      // Concurrent failures of one member switch to the next member only once.
      if (failure.retryable && this.#at === at) this.#at = (at + 1) % this.#members.length;
      throw failure;
    }
  }

  #unary<Request, Response>(
    { url }: Member,
    method: Unary<Request, Response>,
    request: Request,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      method(request, this.#metadata, this.#options(), (error, response) => {
        if (error === null) resolve(response);
        else reject(EtcdError.from(error, url));
      });
    });
  }

  #options(limitMs = CALL_LIMIT_MS): Partial<CallOptions> {
    return { deadline: this.#nowMs() + limitMs };
  }
}

function toRecord({ key, value, createRevision, modRevision }: KeyValue): EtcdRecord {
  return { key: key.toString("utf8"), value, createRevision, modRevision };
}

function toRequest({ compares, ops, otherwise = [] }: EtcdTxn): TxnRequest {
  return {
    compare: compares.map(toCompare),
    success: ops.map(toOp),
    failure: otherwise.map((key) => toRangeOp(key)),
  };
}

function toCompare({ type, key, revision }: EtcdCompare): TxnRequest["compare"][number] {
  const isCreate = type === "create-revision";
  return {
    result: Compare_CompareResult.EQUAL,
    target: isCreate ? Compare_CompareTarget.CREATE : Compare_CompareTarget.MOD,
    key: Buffer.from(key),
    targetUnion: { $case: isCreate ? "createRevision" : "modRevision", value: revision },
  };
}

function toOp(op: EtcdOp): RequestOp {
  if (op.type === "put") {
    const value = { key: Buffer.from(op.key), value: bufferOf(op.value), lease: op.lease ?? 0n };
    return { request: { $case: "requestPut", value } };
  }
  const value = { key: Buffer.from(op.from), rangeEnd: Buffer.from(op.to ?? "") };
  return { request: { $case: "requestDeleteRange", value } };
}

function toRangeOp(key: string): RequestOp {
  const value = {
    key: Buffer.from(key),
    rangeEnd: Buffer.alloc(0),
    limit: 0n,
    revision: 0n,
    serializable: false,
    keysOnly: false,
    countOnly: false,
  };
  return { request: { $case: "requestRange", value } };
}

function foundIn({ responses }: TxnResponse): (EtcdRecord | undefined)[] {
  return responses.map(({ response }) => {
    const kv = response?.$case === "responseRange" ? response.value.kvs[0] : undefined;
    return kv && toRecord(kv);
  });
}

function watchFrom(key: string, startRevision: bigint): WatchRequest {
  const value = { key: Buffer.from(key), startRevision };
  return WatchRequest.fromPartial({ requestUnion: { $case: "createRequest", value } });
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
