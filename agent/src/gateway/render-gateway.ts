import type { GatewayHost, ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { backendsOf, type ServicePortRef } from "./envoy/backends.ts";
import { clusterOf, endpointsOf } from "./envoy/clusters.ts";
import { type ResourceFile, resourceFile } from "./envoy/json.ts";
import { type ListenerOptions, listenersOf } from "./envoy/listeners.ts";
import { secretOf } from "./envoy/secret.ts";
import { encryptedRoutes, endsTls, plainRoutes } from "./envoy/virtual-hosts.ts";
import type { GatewayView } from "./known-gateway.ts";

export interface RenderOptions extends Omit<ListenerOptions, "certificates"> {
  /** The name of this host. */
  readonly node: string;
}

/** Envoy's whole configuration as the contents of files. */
export interface GatewayFiles {
  readonly listeners: ResourceFile;
  readonly routes: { readonly http: ResourceFile; readonly https: ResourceFile };
  /** Clusters by name; the file contains the currently needed ones. */
  readonly clusters: ReadonlyMap<string, ServicePortRef>;
  /** Secrets by certificate id. */
  readonly secrets: ReadonlyMap<string, ResourceFile>;
}

type Services = ReadonlyMap<string, ServiceState>;

/** Renders the configuration for `hosts`, the part of the view's hosts that may be applied. Pure. */
export function renderGateway(
  view: Pick<GatewayView, "certificates" | "challenges">,
  hosts: ReadonlyMap<string, GatewayHost>,
  options: RenderOptions,
): GatewayFiles {
  const used = new Set([...hosts.values()].filter(endsTls).map(({ certificate }) => certificate));
  const secrets = [...view.certificates.values()].filter(({ id }) => used.has(id));
  const certificates = new Set(secrets.map(({ id }) => id));
  return {
    listeners: resourceFile(listenersOf(hosts, { ...options, certificates })),
    routes: {
      http: resourceFile([plainRoutes(hosts, view.challenges, options.ports)]),
      https: resourceFile([encryptedRoutes(hosts, options.ports)]),
    },
    clusters: backendsOf(hosts.values()),
    secrets: new Map(secrets.map((it) => [it.id, resourceFile([secretOf(it)])])),
  };
}

export function clustersFile(
  clusters: ReadonlyMap<string, ServicePortRef>,
  services: Services,
  { places }: RenderOptions,
): ResourceFile {
  const sorted = [...clusters].sort(([a], [b]) => (a < b ? -1 : 1));
  return resourceFile(sorted.map(([, ref]) => clusterOf(ref, serviceOf(ref, services), places)));
}

export function endpointsFile(
  ref: ServicePortRef,
  services: Services,
  { node }: RenderOptions,
): ResourceFile {
  return resourceFile([endpointsOf(ref, serviceOf(ref, services), node)]);
}

function serviceOf({ namespace, service }: ServicePortRef, services: Services): ServiceState | undefined {
  return services.get(`${namespace}/${service}`);
}
