import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { defaultOpaquePorts, hasPort } from "../../endpoints/ports.ts";
import { readAnnotations } from "./annotations.ts";
import type { Protocol, ServiceHints } from "./service-hints.ts";

/** Caches the hints of services. Each version of a record is parsed once. */
export class HintsCache {
  readonly #known = new WeakMap<ResourceRecord, ServiceHints>();

  of(record: ResourceRecord): ServiceHints {
    const known = this.#known.get(record);
    if (known !== undefined) return known;
    const spec = record.resource?.spec;
    const annotations = spec?.$case === "service" ? spec.value.annotations : {};
    const { hints } = readAnnotations(annotations);
    this.#known.set(record, hints);
    return hints;
  }
}

/** A port of a service, as in a look-up. */
export interface NamedPort {
  readonly port: number;
  readonly name: string;
}

/**
 * Returns the protocol that the service's annotations set for the port; undefined if they set none.
 */
export function protocolOfPort(hints: ServiceHints, { port, name }: NamedPort): Protocol | undefined {
  const named = name === "" ? undefined : hints.protocols.get(name);
  return hints.protocols.get(String(port)) ?? named ?? hints.protocols.get("");
}

/**
 * Reports whether proxies forward the port's bytes without protocol detection. The service's
 * protocol annotation for the port takes precedence, then the pod's annotation of its own port,
 * then lists of ports.
 */
export function isOpaque(hints: ServiceHints, port: NamedPort, byPod?: boolean): boolean {
  const protocol = protocolOfPort(hints, port);
  if (protocol !== undefined) return protocol === "opaque";
  if (byPod !== undefined) return byPod;
  return hasPort(hints.opaquePorts ?? defaultOpaquePorts, port.port, port.name);
}
