import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { hasPort, parsePorts } from "./ports.ts";

/** The pod annotation that lists opaque container ports by number, range or name. */
export const POD_OPAQUE_PORTS = "config.linkerd.io/opaque-ports";

/** Returns the pod's own setting for one of its ports. Undefined: it has none. Pure. */
export function opaqueByPod(template: PodTemplate | undefined, containerPort: number): boolean | undefined {
  const text = template?.podConfig?.annotations[POD_OPAQUE_PORTS];
  if (text === undefined) return undefined;
  const parsed = parsePorts(text.trim());
  if ("problem" in parsed) return undefined;
  const containers = [template?.container, ...(template?.sidecars ?? [])];
  const ports = containers.flatMap((container) => container?.ports ?? []);
  const name = ports.find((port) => port.containerPort === containerPort)?.name ?? "";
  return hasPort(parsed.value, containerPort, name);
}
