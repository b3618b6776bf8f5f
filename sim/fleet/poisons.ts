import { poisonedRecords } from "./poison-records.ts";
import type { Poisons } from "./poison-store.ts";
import { poisonedWorkloads } from "./poison-workloads.ts";

/**
 * Objects that this version rejects, but an earlier version or a fault may have stored. Each makes some code that
 * handles it throw, loop or compute nonsense. All are in a namespace of their own, or are nodes without a host.
 */
export const poisons: Poisons = { ...poisonedWorkloads, ...poisonedRecords };
