import type { Etcd } from "../../coordinator/src/store/etcd/etcd.ts";
import type { SimEtcd } from "./sim-etcd.ts";

/** Returns etcd without a network, for the rules: every call is answered at once. */
export function directEtcd(etcd: SimEtcd): Etcd {
  return {
    range: async (query) => etcd.range(query),
    txn: async (txn) => etcd.txn(txn),
    compact: async (revision) => etcd.compact(revision),
    grantLease: async (ttlSeconds) => etcd.grantLease(ttlSeconds),
    keepLeaseAlive: async (id) => etcd.keepLeaseAlive(id),
    revokeLease: async (id) => etcd.revokeLease(id),
    changed: (key, after, signal) =>
      new Promise((resolve) => {
        const stop = etcd.watch(key, after, resolve);
        signal.addEventListener("abort", () => {
          stop();
          resolve();
        });
      }),
    members: async () => [{ type: "up", endpoint: "etcd", version: "3.6.16", clusterId: 1n }],
    close: () => {},
  };
}
