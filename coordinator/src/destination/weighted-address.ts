import type { ProtocolHint, WeightedAddr } from "@forage/proto/destination";
import type { TcpAddress } from "@forage/proto/net";
import type { Endpoint } from "../endpoints/endpoints.ts";
import { isOpaque, type NamedPort, protocolOfPort } from "./hints/hints-of.ts";
import type { ServiceHints } from "./hints/service-hints.ts";
import type { ZoneLocality } from "./zone.ts";

/**
 * The weight of all endpoints, the same as Linkerd's controller uses. Proxies accept any weight.
 */
export const WEIGHT = 10_000;

/** Returns the address of an endpoint for a client, with its weight and hints. */
export function weightedAddress(
  address: TcpAddress,
  metricLabels: Record<string, string>,
  hints: ServiceHints | undefined,
  port: NamedPort,
  opaqueByPod?: boolean,
): WeightedAddr {
  const authority = hints?.authorityOverride;
  return {
    addr: address,
    weight: WEIGHT,
    metricLabels,
    tlsIdentity: hints?.tlsIdentity,
    protocolHint: hints && protocolHint(hints, port, opaqueByPod),
    authorityOverride:
      authority === undefined
        ? undefined
        : { authorityOverride: authority.includes(":") ? authority : `${authority}:${port.port}` },
    http2: hints?.http2,
    resourceRef: undefined,
  };
}

/** Returns the labels of a pod, with its node and zone. */
export function endpointLabels(
  { pod, node, zone, workload }: Pick<Endpoint, "pod" | "node" | "zone" | "workload">,
  locality: ZoneLocality | undefined,
): Record<string, string> {
  return {
    pod,
    node,
    workload,
    ...(zone !== "" && { zone }),
    ...(locality !== undefined && { zone_locality: locality }),
  };
}

/**
 * Returns the protocol hint that the service declares. Nothing else counts: a container without a
 * proxy would fail if clients used the protocol of one.
 */
function protocolHint(
  hints: ServiceHints,
  port: NamedPort,
  opaqueByPod: boolean | undefined,
): ProtocolHint | undefined {
  const opaque = isOpaque(hints, port, opaqueByPod);
  const inboundPort = opaque ? hints.opaqueTransportPort : 0;
  const said = protocolOfPort(hints, port);
  const protocol: ProtocolHint["protocol"] =
    said === "http2"
      ? { $case: "h2", value: {} }
      : said === "opaque" || inboundPort !== 0
        ? { $case: "opaque", value: {} }
        : undefined;
  if (protocol === undefined) return undefined;
  return { protocol, opaqueTransport: inboundPort === 0 ? undefined : { inboundPort } };
}
