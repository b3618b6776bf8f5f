import { Leadership as Real } from "../../coordinator/src/store/etcd/leadership.ts";

export * from "../../coordinator/src/store/etcd/leadership.ts";

/** Becomes the leader although the lease of another coordinator has not expired. */
export const Leadership = {
  acquire: (parts: Parameters<typeof Real.acquire>[0], onStandby: Parameters<typeof Real.acquire>[1]) => {
    const { etcd } = parts;
    const free: typeof etcd = {
      ...etcd,
      txn: (txn) => etcd.txn({ ...txn, compares: txn.compares.filter(({ revision }) => revision !== 0n) }),
      range: async (query) => {
        const found = await etcd.range(query);
        const records = found.records.filter(({ key }) => key !== "m/leader");
        return { ...found, records };
      },
    };
    return Real.acquire({ ...parts, etcd: free }, onStandby);
  },
};
