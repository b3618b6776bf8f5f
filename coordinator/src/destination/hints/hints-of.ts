import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { defaultOpaquePorts, hasPort } from "../../endpoints/ports.ts";
import { readAnnotations } from "./annotations.ts";
import type { Protocol, ServiceHints } from "./service-hints.ts";

/** What is said of services, read once per record. */
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

/** A service's port as a look-up means it. */
export interface NamedPort {
  readonly port: number;
  readonly name: string;
}

/** What the service says of how the port is spoken to. */
export function protocolOfPort(hints: ServiceHints, { port, name }: NamedPort): Protocol | undefined {
  const named = name === "" ? undefined : hints.protocols.get(name);
  return hints.protocols.get(String(port)) ?? named ?? hints.protocols.get("");
}

/**
 * Whether the port's bytes are passed on without looking for a protocol in them. What the service says of the port's protocol
 * comes first, then what the pod says of its own port, then lists of ports.
 */
export function isOpaque(hints: ServiceHints, port: NamedPort, byPod?: boolean): boolean {
  const protocol = protocolOfPort(hints, port);
  if (protocol !== undefined) return protocol === "opaque";
  if (byPod !== undefined) return byPod;
  return hasPort(hints.opaquePorts ?? defaultOpaquePorts, port.port, port.name);
}
