import { messageOf } from "@forage/common/message-of";
import type { PodAssignment, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ContainerPort } from "@forage/proto/forest/v1/forage";
import type { HostFeatures } from "../host-features.ts";
import type { PortRequest } from "../network/network.ts";
import type { Pod, PodContainer, RestartPolicy } from "../pods/pod.ts";
import { mountIdentity } from "./identity-volume.ts";
import { parseContainer, portOf } from "./parse-container.ts";
import { parseNetwork } from "./parse-network.ts";
import { parseObjects } from "./parse-objects.ts";
import { parseFsGroup } from "./parse-security.ts";
import { parseVolumes } from "./parse-volumes.ts";

// Kubernetes' default.
const DEFAULT_GRACE_SECONDS = 30;
const HOSTNAME_MAX = 63;

/**
 * Converts an assigned pod to the agent's model. A pod that can't run gets a `problem` instead of an error, so it
 * doesn't affect other pods. `authorityPem` is the authority by which pods with a service account trust the
 * coordinator.
 */
export function parseAssignment(assignment: PodAssignment, host: HostFeatures, authorityPem?: string): Pod {
  const { uid, namespace, name, specHash, stopping, template, keepLogsSeconds } = assignment;
  const config = template?.podConfig;
  const seconds = config?.terminationGracePeriodSeconds ?? 0;
  const base = {
    uid,
    namespace,
    name,
    specHash,
    stopping,
    ...(stopping && keepLogsSeconds > 0 && { keepLogsMs: keepLogsSeconds * 1000 }),
    hostname: config?.hostNetwork ? host.hostname : asHostname(assignment.hostname || name),
    graceMs: (seconds === 0 ? DEFAULT_GRACE_SECONDS : seconds) * 1000,
    restartPolicy: restartPolicyOf(config?.restartPolicy ?? ""),
  };
  try {
    return mountIdentity({ ...base, ...parseTemplate(assignment, template, host) }, authorityPem);
  } catch (error) {
    const problem = messageOf(error);
    // Stopping the pod needs the names of its containers, even if nothing else can be parsed.
    return { ...base, containers: [], problem };
  }
}

function asHostname(name: string): string {
  return name.slice(0, HOSTNAME_MAX).replace(/[^a-z0-9]+$/, "");
}

type Described = Omit<
  Pod,
  | "uid"
  | "namespace"
  | "name"
  | "specHash"
  | "stopping"
  | "keepLogsMs"
  | "hostname"
  | "graceMs"
  | "restartPolicy"
>;

function parseTemplate(
  assignment: PodAssignment,
  template: PodTemplate | undefined,
  host: HostFeatures,
): Described {
  if (template?.container === undefined) throw new Error("the pod has no container");
  const { podConfig: config } = template;
  const objects = parseObjects(assignment);
  const volumes = parseVolumes(assignment, objects, parseFsGroup(config?.securityContext));
  const setting = { config, volumes, host };
  const containers = [...template.sidecars, template.container].map((it) => parseContainer(it, setting));
  const initContainers = template.initContainers.map((it) => asInit(parseContainer(it, setting)));
  assertDistinct([...initContainers, ...containers]);
  const serviceAccount = config?.serviceAccountName ?? "";
  const main = template.container.name;
  // A port that this host can't serve is left out, because a service's request must not end the pod.
  const servicePorts = assignment.servicePorts.flatMap((port) => servicePort(main, port, host));
  return {
    containers,
    initContainers,
    ...(servicePorts.length > 0 && { servicePorts }),
    volumes,
    objects,
    network: parseNetwork(config),
    labels: { ...config?.labels, ...assignment.labels },
    annotations: config?.annotations ?? {},
    ...(serviceAccount !== "" && { serviceAccount }),
  };
}

function servicePort(container: string, port: ContainerPort, host: HostFeatures): PortRequest[] {
  try {
    return [portOf(container, port, host)];
  } catch {
    return [];
  }
}

/** Returns the container as an init container, which has no probes and hooks and runs to completion. */
function asInit(container: PodContainer): PodContainer {
  const { name, probes = {}, hooks = {} } = container;
  if (Object.keys(probes).length > 0) throw new Error(`init container ${name}: it can't have probes`);
  if (Object.keys(hooks).length > 0) throw new Error(`init container ${name}: it can't have hooks`);
  return container;
}

function assertDistinct(containers: readonly PodContainer[]): void {
  const names = new Set(containers.map((it) => it.name));
  if (names.size !== containers.length) throw new Error("two containers of the pod have one name");
}

function restartPolicyOf(policy: string): RestartPolicy {
  return policy === "OnFailure" || policy === "Never" ? policy : "Always";
}
