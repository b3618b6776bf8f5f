import { StoreError } from "../store-error.ts";
import type { Etcd, EtcdMember } from "./etcd.ts";

/** The oldest version of etcd that was tested with the store. */
const OLDEST_VERSION = [3, 6] as const;

/**
 * Checks the members that respond. Others are ignored, because a majority is sufficient. @throws StoreError UNSUPPORTED
 * that names the member.
 */
export async function checkMembers(etcd: Pick<Etcd, "members">): Promise<readonly EtcdMember[]> {
  const members = await etcd.members();
  let first: Extract<EtcdMember, { type: "up" }> | undefined;
  for (const member of members) {
    if (member.type === "down") continue;
    const { endpoint, version, clusterId } = member;
    if (!isSupported(version)) {
      const oldest = OLDEST_VERSION.join(".");
      throw new StoreError(
        "UNSUPPORTED",
        `etcd at ${endpoint} has version ${version}: the store needs ${oldest} or later; upgrade that member`,
      );
    }
    first ??= member;
    if (first.clusterId !== clusterId) {
      throw new StoreError(
        "UNSUPPORTED",
        `${first.endpoint} and ${endpoint} belong to different etcd clusters: configure the members of one cluster`,
      );
    }
  }
  return members;
}

function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST_VERSION[0] || (major === OLDEST_VERSION[0] && minor >= OLDEST_VERSION[1]);
}
