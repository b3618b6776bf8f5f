import type { PodAssignment, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { Container, EnvVar, ResourceRequirements } from "@forage/proto/forest/v1/forage";
import { milliCpuOf, wholeUnitsOf } from "@forage/scheduler";
import { cpuShares } from "../pods/cpu-shares.ts";
import { defaultPullPolicy } from "../pods/image-reference.ts";
import type { EnvEntry, Pod, PodContainer, PullPolicy, RestartPolicy } from "../pods/pod.ts";
import { unsupportedField } from "./unsupported-field.ts";

// Kubernetes' default.
const DEFAULT_GRACE_SECONDS = 30;
const HOSTNAME_MAX = 63;
// Container names become parts of file names and of the runtime's names.
const CONTAINER_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** A pod as the agent runs it. What can't be run comes back with a `problem`, so that it hinders no other pod. */
export function parseAssignment(assignment: PodAssignment): Pod {
  const { uid, namespace, name, specHash, stopping, template } = assignment;
  const seconds = template?.podConfig?.terminationGracePeriodSeconds ?? 0;
  const base = {
    uid,
    namespace,
    name,
    specHash,
    stopping,
    hostname: name.slice(0, HOSTNAME_MAX).replace(/[^a-z0-9]+$/, ""),
    graceMs: (seconds === 0 ? DEFAULT_GRACE_SECONDS : seconds) * 1000,
    restartPolicy: restartPolicyOf(template),
  };
  try {
    return { ...base, containers: containersOf(template) };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    // Stopping needs the names of what may run, even if no more of it is understood.
    return { ...base, containers: [], problem };
  }
}

function containersOf(template: PodTemplate | undefined): readonly PodContainer[] {
  if (template?.container === undefined) throw new Error("the pod has no container");
  const field = unsupportedField(template);
  if (field !== undefined) throw new Error(`this agent doesn't support ${field}`);
  const containers = [...template.sidecars, template.container].map(parseContainer);
  const names = new Set(containers.map((it) => it.name));
  if (names.size !== containers.length) throw new Error("two containers of the pod have one name");
  return containers;
}

function parseContainer(container: Container): PodContainer {
  const { name, image, workingDir } = container;
  if (!CONTAINER_NAME.test(name)) throw new Error(`${JSON.stringify(name)} can't be a container's name`);
  return {
    name,
    image,
    pullPolicy: pullPolicyOf(container),
    command: container.command,
    args: container.args,
    env: container.env.map((it) => envEntry(name, it)),
    ...(workingDir !== "" && { workingDir }),
    ports: container.ports.map((port) => ({
      container: name,
      containerPort: port.containerPort,
      protocol: protocolOf(port.protocol),
    })),
    ...resourcesOf(container.resources),
  };
}

function envEntry(container: string, { name, valueSource }: EnvVar): EnvEntry {
  if (valueSource === undefined) return { name, value: "" };
  if (valueSource.$case === "value") return { name, value: valueSource.value };
  throw new Error(`container ${container}: env ${name}: this agent doesn't support ${valueSource.$case}`);
}

function pullPolicyOf({ image, imagePullPolicy }: Container): PullPolicy {
  switch (imagePullPolicy) {
    case "Always":
    case "IfNotPresent":
    case "Never":
      return imagePullPolicy;
    case "":
      return defaultPullPolicy(image);
    default:
      throw new Error(`${JSON.stringify(imagePullPolicy)} is not a pull policy`);
  }
}

function restartPolicyOf(template: PodTemplate | undefined): RestartPolicy {
  const policy = template?.podConfig?.restartPolicy ?? "";
  return policy === "OnFailure" || policy === "Never" ? policy : "Always";
}

function protocolOf(protocol: string): "TCP" | "UDP" | "SCTP" {
  if (protocol === "" || protocol === "TCP") return "TCP";
  if (protocol === "UDP" || protocol === "SCTP") return protocol;
  throw new Error(`${JSON.stringify(protocol)} is not a protocol`);
}

type Limits = Pick<PodContainer, "cpuLimitMilli" | "memoryLimitBytes" | "cpuShares">;

/** As in Kubernetes, a limit without a request is a request for as much. */
function resourcesOf(resources: ResourceRequirements | undefined): Limits {
  const limits = { cpu: resources?.limits?.cpu ?? "", memory: resources?.limits?.memory ?? "" };
  const cpuRequest = resources?.requests?.cpu || limits.cpu;
  return {
    ...(limits.cpu !== "" && { cpuLimitMilli: milliCpuOf(limits.cpu) }),
    ...(limits.memory !== "" && { memoryLimitBytes: wholeUnitsOf(limits.memory) }),
    ...(cpuRequest !== "" && { cpuShares: cpuShares(milliCpuOf(cpuRequest)) }),
  };
}
