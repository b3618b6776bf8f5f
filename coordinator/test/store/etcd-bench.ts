import { randomUUID } from "node:crypto";
import { systemClock } from "@forage/common/clock";
import type { Random } from "@forage/common/random";
import type { Etcd } from "../../src/store/etcd/etcd.ts";
import { EtcdClient } from "../../src/store/etcd/etcd-client.ts";
import { EtcdError } from "../../src/store/etcd/etcd-error.ts";
import { type EtcdStore, type EtcdStoreOptions, openEtcdStore } from "../../src/store/etcd/etcd-store.ts";
import { LEADER_KEY } from "../../src/store/etcd/layout.ts";
import { prefixed } from "../../src/store/etcd/prefixed.ts";
import { ETCD_SCHEMA, etcdEndpoints } from "../../src/store/etcd/settings.ts";

type OpenOptions = Partial<EtcdStoreOptions> & { readonly holder?: string };

/** Returns a client for keys under the prefix. */
export function connectEtcd(endpoint: string | readonly string[], prefix: string): Etcd {
  const settings = ETCD_SCHEMA.parse({ endpoints: [endpoint].flat(), prefix });
  return prefixed(new EtcdClient({ endpoints: etcdEndpoints(settings), nowMs: Date.now }), settings.prefix);
}

export function storeOptions(etcd: Etcd, { holder = "a", ...rest }: OpenOptions = {}): EtcdStoreOptions {
  return {
    etcd,
    self: { holder, name: `host-${holder}` },
    clock: systemClock,
    callClock: systemClock,
    random: Math.random,
    newId: randomUUID,
    ...rest,
  };
}

/** Opens a store like a coordinator with this name. */
export function openStore(etcd: Etcd, options: OpenOptions = {}): Promise<EtcdStore> {
  return openEtcdStore(storeOptions(etcd, options));
}

/** Ends the lease under which a coordinator leads, as etcd does when it is not renewed. */
export async function endLead(etcd: Etcd): Promise<void> {
  const { records } = await etcd.range({ from: LEADER_KEY });
  const { lease }: { lease?: string } = JSON.parse(records[0]?.value.toString() ?? "{}");
  await etcd.revokeLease(BigInt(lease ?? 0));
}

/**
 * Wraps etcd so that one in `oneIn` transactions is lost: half of them before they take effect,
 * half of them only their answers.
 */
export function lossy(etcd: Etcd, random: Random, oneIn: number): Etcd {
  const lose = (): boolean => random.below(oneIn) === 0;
  return {
    ...bound(etcd),
    txn: async (txn) => {
      if (lose() && random.chance(0.5)) throw new EtcdError("UNAVAILABLE", "lost on its way");
      const result = await etcd.txn(txn);
      if (lose()) throw new EtcdError("UNAVAILABLE", "its answer was lost");
      return result;
    },
  };
}

/**
 * Wraps etcd so that the process ends at a transaction: before it takes effect, or after it without
 * an answer.
 */
export function crashing(etcd: Etcd, atTxn: number, when: "before" | "after"): Etcd & { crashed: boolean } {
  let txns = 0;
  const crashed = (): never => {
    throw new EtcdError("REJECTED", "the process has ended");
  };
  const self = {
    ...bound(etcd),
    crashed: false,
    txn: async (txn: Parameters<Etcd["txn"]>[0]) => {
      if (self.crashed) return crashed();
      if (++txns < atTxn) return etcd.txn(txn);
      self.crashed = true;
      if (when === "after") await etcd.txn(txn);
      return crashed();
    },
    // The lease stays, and the next process of the same coordinator does not wait for its end.
    revokeLease: async (id: bigint) => (self.crashed ? undefined : etcd.revokeLease(id)),
  };
  return self;
}

function bound(etcd: Etcd): Etcd {
  return {
    range: (query) => etcd.range(query),
    txn: (txn) => etcd.txn(txn),
    compact: (revision) => etcd.compact(revision),
    grantLease: (ttlSeconds) => etcd.grantLease(ttlSeconds),
    keepLeaseAlive: (id) => etcd.keepLeaseAlive(id),
    revokeLease: (id) => etcd.revokeLease(id),
    changed: (key, after, signal) => etcd.changed(key, after, signal),
    members: () => etcd.members(),
    close: () => etcd.close(),
  };
}
