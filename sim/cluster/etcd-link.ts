import type { Random } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import type { Etcd, EtcdMember, EtcdQuery, EtcdTxn } from "../../coordinator/src/store/etcd/etcd.ts";
import { LEASE_CALL_LIMIT_MS } from "../../coordinator/src/store/etcd/etcd-client.ts";
import { EtcdError } from "../../coordinator/src/store/etcd/etcd-error.ts";
import type { ProcessGate } from "../fleet/process-gate.ts";
import type { SimEtcd } from "./sim-etcd.ts";

/** The network between one coordinator's host and etcd. It survives the coordinator's process. */
export interface EtcdWay {
  cut: boolean;
  /** The longest time that a message takes. */
  latencyMs: number;
  /** The probability for each message that it is lost. */
  lossShare: number;
}

export interface EtcdLinkOptions {
  readonly etcd: SimEtcd;
  readonly way: EtcdWay;
  readonly time: VirtualClock;
  readonly random: Random;
  readonly gate: ProcessGate;
  /** Aborted when the process dies. Requests that it had sent still arrive. */
  readonly life: AbortSignal;
}

/** The same as in the client of etcd. */
const CALL_LIMIT_MS = 3_000;

/** etcd as seen by one process: delayed, unreachable while the network is cut, and sometimes without an answer. */
export class EtcdLink implements Etcd {
  readonly #options: EtcdLinkOptions;

  constructor(options: EtcdLinkOptions) {
    this.#options = options;
  }

  range(query: EtcdQuery) {
    return this.#call((etcd) => etcd.range(query));
  }

  txn(txn: EtcdTxn) {
    return this.#call((etcd) => etcd.txn(txn));
  }

  compact(revision: bigint): Promise<void> {
    return this.#call((etcd) => etcd.compact(revision));
  }

  grantLease(ttlSeconds: number): Promise<bigint> {
    return this.#call((etcd) => etcd.grantLease(ttlSeconds));
  }

  keepLeaseAlive(id: bigint): Promise<boolean> {
    return this.#call((etcd) => etcd.keepLeaseAlive(id), LEASE_CALL_LIMIT_MS);
  }

  revokeLease(id: bigint): Promise<void> {
    return this.#call((etcd) => etcd.revokeLease(id));
  }

  /** Waits for a change. If the message is lost, the wait never ends, and only the caller's own timer ends it. */
  changed(key: string, after: bigint, signal: AbortSignal): Promise<void> {
    const { etcd, gate, life } = this.#options;
    return new Promise((resolve) => {
      let stop = (): void => {};
      signal.addEventListener("abort", () => {
        stop();
        resolve();
      });
      const onChange = (): void => this.#carry(() => gate.input(() => life.aborted || resolve()));
      this.#send(() => {
        if (!signal.aborted) stop = etcd.watch(key, after, onChange);
      });
    });
  }

  async members(): Promise<EtcdMember[]> {
    const endpoint = "etcd";
    return this.#call(() => [{ type: "up", endpoint, version: "3.6.16", clusterId: 1n } as const]).catch(
      (error: EtcdError) => [{ type: "down", endpoint, reason: error.message } as const],
    );
  }

  close(): void {}

  #call<T>(run: (etcd: SimEtcd) => T, limitMs = CALL_LIMIT_MS): Promise<T> {
    const { etcd, time, gate, life } = this.#options;
    return new Promise((resolve, reject) => {
      const settle = (deliver: () => void): void => {
        cancel();
        if (!life.aborted) deliver();
      };
      const late = new EtcdError("UNAVAILABLE", "no answer in time");
      const cancel = time.schedule(limitMs, () => gate.timer(() => settle(() => reject(late))));
      this.#send(() => {
        const deliver = attempt(() => run(etcd), resolve, reject);
        this.#carry(() => gate.input(() => settle(deliver)));
      });
    });
  }

  /** Sends a message. Neither a paused nor a dead process sends any. */
  #send(arrived: () => void): void {
    const { gate, life } = this.#options;
    gate.input(() => life.aborted || this.#carry(arrived));
  }

  #carry(arrived: () => void): void {
    const { time, random, way, etcd } = this.#options;
    time.schedule(Math.round(way.latencyMs * (0.2 + 0.8 * random.next())), () => {
      if (!way.cut && etcd.up && !random.chance(way.lossShare)) arrived();
    });
  }
}

function attempt<T>(
  run: () => T,
  resolve: (result: T) => void,
  reject: (error: unknown) => void,
): () => void {
  try {
    const result = run();
    return () => resolve(result);
  } catch (error) {
    return () => reject(error);
  }
}
