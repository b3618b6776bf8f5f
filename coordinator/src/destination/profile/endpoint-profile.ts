import type { DestinationProfile, WeightedAddr } from "@forage/proto/destination";
import type { TcpAddress } from "@forage/proto/net";
import { isOpaque, type NamedPort } from "../hints/hints-of.ts";
import { DEFAULT_RETRY_BUDGET, type ServiceHints } from "../hints/service-hints.ts";
import { endpointLabels, weightedAddress } from "../weighted-address.ts";
import { emptyProfile } from "./service-profile.ts";

/** One port of a pod at the address of the look-up. */
export interface ProfiledPod {
  readonly address: TcpAddress;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly zone: string;
  readonly workload: string;
  /** The port, with the name that its service uses, or the container's port number. */
  readonly port: NamedPort;
  /** The hints of the service in front of the pod; undefined if there is none. */
  readonly hints: ServiceHints | undefined;
  /** Whether the pod's annotation declares the port opaque; undefined without the annotation. */
  readonly opaque: boolean | undefined;
}

/** Returns the profile of a connection to one pod, which is not balanced. */
export function endpointProfile(pod: ProfiledPod, opaqueByDefault: ServiceHints): DestinationProfile {
  const labels = { namespace: pod.namespace, ...endpointLabels(pod, undefined) };
  const endpoint: WeightedAddr = weightedAddress(pod.address, labels, pod.hints, pod.port, pod.opaque);
  return {
    ...emptyProfile,
    opaqueProtocol: isOpaque(pod.hints ?? opaqueByDefault, pod.port, pod.opaque),
    retryBudget: pod.hints?.retryBudget ?? DEFAULT_RETRY_BUDGET,
    // The authority applies to balanced traffic only; a connection to one pod keeps its own.
    endpoint: { ...endpoint, authorityOverride: undefined },
  };
}
