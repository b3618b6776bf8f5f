import type { RevisionRecord, ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { workloadKey } from "../model/workload.ts";

/** The names of groups by which stored records are found in their views, in addition to their keys. */

export function revisionGroups(record: RevisionRecord): string[] {
  const workload = `workload:${workloadKey(record.namespace, record.kind, record.name)}`;
  return [workload, ...Object.keys(record.objectVersions).map((name) => `pin:${record.namespace}/${name}`)];
}

export function addressGroups({ virtualIps, loadBalancerIps }: ServiceAddressRecord): string[] {
  return [...virtualIps, ...loadBalancerIps].map((ip) => `ip:${ip}`);
}
