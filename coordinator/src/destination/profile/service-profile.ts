import type { DestinationProfile } from "@forage/proto/destination";
import { DEFAULT_RETRY_BUDGET, type ServiceHints } from "../hints/service-hints.ts";
import { WEIGHT } from "../weighted-address.ts";
import { overridesOf, profileRoutes, splitBackends } from "./routes.ts";
import type { ServiceRoute } from "./service-routes.ts";

/** One port of an existing service. */
export interface ProfiledService {
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
  readonly opaque: boolean;
  readonly hints: ServiceHints;
  readonly routes: readonly ServiceRoute[];
}

/** The profile of a port that the service does not have. */
export const emptyProfile: DestinationProfile = {
  fullyQualifiedName: "",
  opaqueProtocol: false,
  routes: [],
  retryBudget: undefined,
  dstOverrides: [],
  endpoint: undefined,
  parentRef: undefined,
  profileRef: undefined,
};

/**
 * The profile of an unknown destination: traffic continues to its original address. After an error,
 * proxies would delay the traffic.
 */
export const unknownProfile: DestinationProfile = { ...emptyProfile, retryBudget: DEFAULT_RETRY_BUDGET };

/** Returns the profile of a service. */
export function serviceProfile(
  { namespace, service, port, opaque, hints, routes }: ProfiledService,
  domain: string,
): DestinationProfile {
  const reference = { name: service, namespace, section: "" };
  const split = splitBackends(routes);
  // Current proxies balance over a service's endpoints only if the profile names a backend, so the
  // service itself is named.
  const backends = split.length > 0 ? split : [{ service, port, weight: WEIGHT }];
  const source = routes.find(({ own, route }) => own && route.kind === "route")?.route;
  return {
    fullyQualifiedName: `${service}.${namespace}.svc.${domain}`,
    opaqueProtocol: opaque,
    routes: profileRoutes(routes, hints.retry),
    retryBudget: hints.retryBudget,
    dstOverrides: overridesOf(backends, { namespace, domain, port }),
    endpoint: undefined,
    parentRef: {
      kind: { $case: "resource", value: { ...reference, group: "core", kind: "Service", port } },
    },
    profileRef: source && {
      kind: {
        $case: "resource",
        value: { ...reference, group: "forest.v1", kind: "Route", name: source.name, port: 0 },
      },
    },
  };
}
