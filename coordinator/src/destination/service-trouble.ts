import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { resourceKey } from "../model/keys.ts";
import type { State } from "../state/state.ts";
import { findService, protocolOf, targetPortOf } from "./endpoints.ts";

/** Why a service can have no endpoints, however well its target's pods are. */
export interface ServiceTrouble {
  readonly reason: "TargetNotFound" | "PortNotFound";
  readonly message: string;
}

/** Returns what is wrong with the service itself; undefined: nothing, or there is no such service. */
export function serviceTrouble(state: State, namespace: string, name: string): ServiceTrouble | undefined {
  const spec = findService(state, namespace, name)?.spec;
  if (spec === undefined) return undefined;
  const target = state.resource(resourceKey(namespace, "container_service", spec.target));
  if (target === undefined || target.record.deleting) {
    const message = `there is no container_service/${spec.target} in namespace "${namespace}"`;
    return { reason: "TargetNotFound", message };
  }
  const declared = target.workload === undefined ? undefined : portsOf(target.workload.template);
  const missing = spec.ports.find((port) => {
    return !declared?.has(`${targetPortOf([port], port.port)}/${protocolOf(port)}`);
  });
  if (declared === undefined || missing === undefined) return undefined;
  const port = `${targetPortOf([missing], missing.port)}/${protocolOf(missing)}`;
  const has = declared.size === 0 ? "none" : [...declared].slice(0, maxNamed).join(", ");
  const message = `no container of container_service/${spec.target} declares port ${port}, to which port ${missing.port} leads (declared: ${has}); add it to container.ports`;
  return { reason: "PortNotFound", message };
}

/** More ports than these don't help. */
const maxNamed = 10;

function portsOf({ container, sidecars, initContainers }: PodTemplate): ReadonlySet<string> {
  const containers = [container, ...sidecars, ...initContainers].filter((it) => it !== undefined);
  const ports = containers.flatMap((it) => it.ports);
  return new Set(ports.map((port) => `${port.containerPort}/${protocolOf(port)}`));
}
