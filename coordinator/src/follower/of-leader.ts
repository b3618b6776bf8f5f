import { Metadata, type StatusObject, status } from "@grpc/grpc-js";

/**
 * The trailer of a call that failed because the leader was lost. Agents stay with a coordinator
 * that sends it.
 */
const OF_LEADER_KEY = "forage-of-leader";

/** Marks the end of a call that the leader had received, if the call can be repeated. */
export function markOfLeader(result: Partial<StatusObject>): Partial<StatusObject> {
  if (result.code !== status.UNAVAILABLE) return result;
  const metadata = result.metadata?.clone() ?? new Metadata();
  metadata.set(OF_LEADER_KEY, "1");
  return { ...result, metadata };
}
