import { dependency } from "../endpoints/change-keys.ts";
import { type Endpoint, endpointsOf, findService, listedPort } from "../endpoints/endpoints.ts";
import type { Evaluation, Subject } from "../feed/topic.ts";
import { toTcpAddress } from "../ip/address.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import {
  type AddressSet,
  encodeUpdates,
  type PublishedAddress,
  sameSet,
  updatesBetween,
} from "./address-set.ts";
import { type ClientPlace, placeKey, reachableFrom } from "./client-place.ts";
import type { HintsCache, NamedPort } from "./hints/hints-of.ts";
import type { ServiceHints } from "./hints/service-hints.ts";
import type { ServicePath } from "./path.ts";
import { endpointLabels, weightedAddress } from "./weighted-address.ts";
import { nearEndpoints, zoneLocality } from "./zone.ts";

export interface EndpointSubjectOptions {
  readonly state: ClusterView;
  readonly hints: HintsCache;
}

/** Returns the topic of the endpoints of one service port, as clients at one place see them. */
export function endpointSubject(
  path: ServicePath,
  place: ClientPlace,
  options: EndpointSubjectOptions,
): Subject<AddressSet> {
  const { namespace, service, hostname, port } = path;
  return {
    key: `endpoints/${namespace}/${service}/${hostname}/${port}/${placeKey(place)}`,
    evaluate: (previous) => evaluate(path, place, options, previous),
    messages: (from, to) => encodeUpdates(updatesBetween(from, to)),
  };
}

function evaluate(
  path: ServicePath,
  place: ClientPlace,
  { state, hints: cache }: EndpointSubjectOptions,
  previous: AddressSet | undefined,
): Evaluation<AddressSet> {
  const { namespace, service, port } = path;
  const entry = findService(state, namespace, service);
  const dependsOn = [dependency.service(namespace, service)];
  const metricLabels = { namespace, service };
  const addresses = new Map<string, PublishedAddress>();
  let exists = false;
  if (entry !== undefined) {
    dependsOn.push(dependency.workload(workloadKey(namespace, "container_service", entry.spec.target)));
    const hints = cache.of(entry.record);
    const named = { port, name: listedPort(entry.spec.ports, port)?.name ?? "" };
    exists = path.hostname === "" || hasHostname(state, path, entry.spec);
    const candidates = exists ? reachableFrom(place, candidatesOf(state, path)) : [];
    for (const endpoint of hints.zoneAware ? nearEndpoints(candidates, place.zone) : candidates) {
      const key = `${endpoint.address}|${endpoint.port}`;
      const known = previous?.addresses.get(key);
      const published = isCurrent(known, endpoint, hints)
        ? known
        : publishedOf(endpoint, place, hints, named);
      // If two endpoints have the same address, the last one is used. Endpoints whose host is a
      // name are omitted, because proxies need addresses.
      if (published !== undefined) addresses.set(key, published);
    }
  }
  const next = { exists, metricLabels, addresses };
  return { state: previous !== undefined && sameSet(previous, next) ? previous : next, dependsOn };
}

function candidatesOf(state: ClusterView, { namespace, service, port, hostname }: ServicePath): Endpoint[] {
  // Proxies support TCP only.
  const endpoints = endpointsOf(state, namespace, service, port).filter((e) => e.protocol === "TCP");
  return hostname === "" ? endpoints : endpoints.filter(({ pod }) => pod === hostname);
}

/** Reports whether the pod has a hostname of its own, which only pods of headless services have. */
function hasHostname(
  state: ClusterView,
  { namespace, hostname }: ServicePath,
  { type, target }: { readonly type: string; readonly target: string },
): boolean {
  const pod = state.pod(namespace, hostname);
  return type === "Headless" && pod?.workloadKey === workloadKey(namespace, "container_service", target);
}

function publishedOf(
  endpoint: Endpoint,
  { zone }: ClientPlace,
  hints: ServiceHints,
  port: NamedPort,
): PublishedAddress | undefined {
  const addr = toTcpAddress(endpoint.address, endpoint.port);
  if (addr === undefined) return undefined;
  const labels = endpointLabels(endpoint, zoneLocality(zone, endpoint.zone));
  return { endpoint, hints, wire: { ...weightedAddress(addr, labels, hints, port, endpoint.opaque), addr } };
}

function isCurrent(
  published: PublishedAddress | undefined,
  endpoint: Endpoint,
  hints: ServiceHints,
): published is PublishedAddress {
  if (published === undefined || published.hints !== hints) return false;
  const known = published.endpoint;
  return (
    known.pod === endpoint.pod &&
    known.node === endpoint.node &&
    known.zone === endpoint.zone &&
    known.workload === endpoint.workload &&
    known.opaque === endpoint.opaque
  );
}
