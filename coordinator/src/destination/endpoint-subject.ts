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

/** The endpoints of one service port as clients at one place should see them. */
export function endpointSubject(
  path: ServicePath,
  place: ClientPlace,
  options: EndpointSubjectOptions,
): Subject<AddressSet> {
  const { namespace, service, hostname, port } = path;
  return {
    key: `endpoints/${namespace}/${service}/${hostname}/${port}/${placeKey(place)}`,
    look: (previous) => lookAt(path, place, options, previous),
    messages: (from, to) => encodeUpdates(updatesBetween(from, to)),
  };
}

function lookAt(
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
      const told = sameTold(known, endpoint, hints) ? known : tell(endpoint, place, hints, named);
      // Of two endpoints with one address the last one wins. Hosts with only a name are left out, because proxies need addresses.
      if (told !== undefined) addresses.set(key, told);
    }
  }
  const next = { exists, metricLabels, addresses };
  return { state: previous !== undefined && sameSet(previous, next) ? previous : next, dependsOn };
}

function candidatesOf(state: ClusterView, { namespace, service, port, hostname }: ServicePath): Endpoint[] {
  // Proxies speak TCP.
  const endpoints = endpointsOf(state, namespace, service, port).filter((e) => e.protocol === "TCP");
  return hostname === "" ? endpoints : endpoints.filter(({ pod }) => pod === hostname);
}

/** Reports whether the pod has a name of its own. Only pods behind headless services have one. */
function hasHostname(
  state: ClusterView,
  { namespace, hostname }: ServicePath,
  { type, target }: { readonly type: string; readonly target: string },
): boolean {
  const pod = state.pod(namespace, hostname);
  return type === "Headless" && pod?.workloadKey === workloadKey(namespace, "container_service", target);
}

function tell(
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

function sameTold(
  told: PublishedAddress | undefined,
  endpoint: Endpoint,
  hints: ServiceHints,
): told is PublishedAddress {
  if (told === undefined || told.hints !== hints) return false;
  const known = told.endpoint;
  return (
    known.pod === endpoint.pod &&
    known.node === endpoint.node &&
    known.zone === endpoint.zone &&
    known.workload === endpoint.workload &&
    known.opaque === endpoint.opaque
  );
}
