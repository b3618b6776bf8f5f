import { normalIp } from "@forage/common/ip";
import type { ClusterView } from "../state/cluster-view.ts";
import { Directory } from "./directory.ts";

/** Opens the directory of a cluster view. */
export function openDirectory(
  state: ClusterView,
  {
    config,
    defer,
  }: { readonly config: { readonly clusterDomain: string }; readonly defer: (run: () => void) => void },
): Directory {
  const virtualIps = (ip: string) =>
    state.serviceAddresses
      .group(`ip:${normalIp(ip)}`)
      .filter(({ record }) => record.releasedAt === undefined)
      .map(({ record: { namespace, name } }) => ({ namespace, service: name }));
  return new Directory({ state, domain: config.clusterDomain, virtualIps, defer });
}
