import type { Etcd, EtcdOp, EtcdRecord } from "./etcd.ts";

/** Returns an `Etcd` that adds the prefix to all keys of the underlying one. */
export function prefixed(etcd: Etcd, prefix: string): Etcd {
  const outer = (key: string): string => prefix + key;
  const inner = (record: EtcdRecord): EtcdRecord => ({ ...record, key: record.key.slice(prefix.length) });
  const toOuter = (op: EtcdOp): EtcdOp => {
    if (op.type === "put") return { ...op, key: outer(op.key) };
    return { ...op, from: outer(op.from), ...(op.to !== undefined && { to: outer(op.to) }) };
  };
  return {
    range: async ({ from, to, ...rest }) => {
      const found = await etcd.range({
        ...rest,
        from: outer(from),
        ...(to !== undefined && { to: outer(to) }),
      });
      return { ...found, records: found.records.map(inner) };
    },
    txn: async ({ compares, ops, otherwise = [] }) => {
      const result = await etcd.txn({
        compares: compares.map((compare) => ({ ...compare, key: outer(compare.key) })),
        ops: ops.map(toOuter),
        otherwise: otherwise.map(outer),
      });
      return { ...result, found: result.found.map((record) => record && inner(record)) };
    },
    changed: (key, after, signal) => etcd.changed(outer(key), after, signal),
    compact: (revision) => etcd.compact(revision),
    grantLease: (ttlSeconds) => etcd.grantLease(ttlSeconds),
    keepLeaseAlive: (id) => etcd.keepLeaseAlive(id),
    revokeLease: (id) => etcd.revokeLease(id),
    members: () => etcd.members(),
    close: () => etcd.close(),
  };
}
