import { Leadership as Real } from "../../coordinator/src/store/etcd/leadership.ts";

export * from "../../coordinator/src/store/etcd/leadership.ts";

/** Takes the lead although the lease of another coordinator goes on. */
export const Leadership = {
  take: (parts: Parameters<typeof Real.take>[0], onStandby: Parameters<typeof Real.take>[1]) => {
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
    return Real.take({ ...parts, etcd: free }, onStandby);
  },
};
