import { prefixed as real } from "../../coordinator/src/store/etcd/prefixed.ts";

/** Writes even if another coordinator leads. */
export const prefixed: typeof real = (etcd, prefix) => {
  const client = real(etcd, prefix);
  const txn: typeof client.txn = (txn) =>
    client.txn({ ...txn, compares: txn.compares.filter(({ revision }) => revision === 0n) });
  return { ...client, txn };
};
