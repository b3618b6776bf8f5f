import { forgetPod } from "../../coordinator/src/control/pod-writes.ts";
import { type recordHello as real, recordStatuses } from "../../coordinator/src/link/reports.ts";

export * from "../../coordinator/src/link/reports.ts";

/** Treats every pod that a connecting node doesn't report as removed. */
export const recordHello: typeof real = async (node, known, options) => {
  await recordStatuses(node, known, options);
  const uids = new Set(known.map(({ uid }) => uid));
  for (const pod of options.state.podsOnNode(node)) {
    if (uids.has(pod.record.uid)) continue;
    const { compares, ops } = forgetPod(pod);
    await options.store.txn(compares, ops);
  }
};
