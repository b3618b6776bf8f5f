import type { ResourceList, ResourceRequirements } from "@forage/proto/forest/v1/forage";
import { milliCpuOf, wholeUnitsOf } from "@forage/scheduler";
import { cpuShares } from "../pods/cpu-shares.ts";
import type { PodContainer } from "../pods/pod.ts";

type Resources = Pick<
  PodContainer,
  "cpuLimitMilli" | "memoryLimitBytes" | "cpuShares" | "rootLimitBytes" | "resources" | "extended"
>;

/** Parses requests and limits. As in Kubernetes, a limit without a request is also the request, and a limit of 0 is no limit. */
export function parseResources(requirements: ResourceRequirements | undefined): Resources {
  const limits = quantitiesOf(requirements?.limits);
  const requests = { ...limits, ...quantitiesOf(requirements?.requests) };
  const cpuLimitMilli = milliCpuOf(limits.cpu ?? "0");
  const memoryLimitBytes = wholeUnitsOf(limits.memory ?? "0");
  const rootLimitBytes = wholeUnitsOf(limits["ephemeral-storage"] ?? "0");
  // Parsed only to detect errors.
  for (const it of [requests.memory, requests["ephemeral-storage"]]) wholeUnitsOf(it ?? "0");
  const resources = { ...prefixed("requests", requests), ...prefixed("limits", limits) };
  const extended = extendedOf(requirements);
  return {
    ...(cpuLimitMilli > 0 && { cpuLimitMilli }),
    ...(memoryLimitBytes > 0 && { memoryLimitBytes }),
    ...(rootLimitBytes > 0 && { rootLimitBytes }),
    ...(requests.cpu !== undefined && { cpuShares: cpuShares(milliCpuOf(requests.cpu)) }),
    ...(Object.keys(resources).length > 0 && { resources }),
    ...(Object.keys(extended).length > 0 && { extended }),
  };
}

/** Returns the quantities that are set, by Kubernetes' resource names. */
function quantitiesOf(list: ResourceList | undefined): Record<string, string> {
  const { cpu = "", memory = "", ephemeralStorage = "" } = list ?? {};
  return {
    ...(cpu !== "" && { cpu }),
    ...(memory !== "" && { memory }),
    ...(ephemeralStorage !== "" && { "ephemeral-storage": ephemeralStorage }),
  };
}

function prefixed(list: string, quantities: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities).map(([name, text]) => [`${list}.${name}`, text]));
}

/** Parses extended resources. Devices can't be shared, so a request must equal its limit. */
function extendedOf(requirements: ResourceRequirements | undefined): Record<string, number> {
  const limits = requirements?.limits?.extended ?? {};
  const requests = requirements?.requests?.extended ?? {};
  const counts: Record<string, number> = {};
  for (const name of new Set([...Object.keys(requests), ...Object.keys(limits)])) {
    const count = wholeUnitsOf(requests[name] ?? limits[name] ?? "0");
    if (wholeUnitsOf(limits[name] ?? requests[name] ?? "0") !== count) {
      throw new Error(`resources: the request for ${name} and its limit must be equal`);
    }
    if (count > 0) counts[name] = count;
  }
  return counts;
}
