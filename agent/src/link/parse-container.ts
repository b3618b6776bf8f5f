import { messageOf } from "@forage/common/message-of";
import type { Container, ContainerPort, EnvVar, PodConfig } from "@forage/proto/forest/v1/forage";
import type { HostFeatures } from "../host-features.ts";
import { isPodField } from "../pods/act/pod-field.ts";
import { isResourceField } from "../pods/act/resource-field.ts";
import { defaultPullPolicy } from "../pods/image-reference.ts";
import type { EnvEntry, PodContainer, PullPolicy } from "../pods/pod.ts";
import type { PodVolumeSpec } from "../volumes/volumes.ts";
import { parseHooks, parseProbes } from "./parse-probes.ts";
import { parseResources } from "./parse-resources.ts";
import { parseSecurity } from "./parse-security.ts";
import { parseMounts } from "./parse-volumes.ts";

/** The settings that containers inherit from their pod. */
export interface ContainerSetting {
  readonly config: PodConfig | undefined;
  readonly volumes: PodVolumeSpec;
  readonly host: HostFeatures;
}

// Container names become parts of file names and of the runtime's names.
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const PORT_MAX = 65_535;

/** Parses a container. @throws Error that names the container. */
export function parseContainer(container: Container, setting: ContainerSetting): PodContainer {
  const { name } = container;
  if (!NAME.test(name)) throw new Error(`${JSON.stringify(name)} can't be a container's name`);
  try {
    return readContainer(container, setting);
  } catch (cause) {
    const message = messageOf(cause);
    throw new Error(`container ${name}: ${message}`, { cause });
  }
}

function readContainer(container: Container, { config, volumes, host }: ContainerSetting): PodContainer {
  const { name, image, workingDir, command, args, stdin, tty } = container;
  const mounts = parseMounts(container, volumes);
  const probes = parseProbes(container);
  const hooks = parseHooks(container.lifecycle);
  const ociRuntime = ociRuntimeOf(config?.runtimeClassName ?? "", host);
  return {
    name,
    image,
    pullPolicy: pullPolicyOf(container),
    command,
    args,
    env: container.env.map(envEntry),
    ...(workingDir !== "" && { workingDir }),
    ports: container.ports.map((port) => portOf(name, port, host)),
    ...parseResources(container.resources),
    ...(mounts.length > 0 && { mounts }),
    ...(probes && { probes }),
    ...(hooks && { hooks }),
    ...parseSecurity(container.securityContext, config?.securityContext, host),
    ...(stdin && { stdin }),
    ...(tty && { tty }),
    ...(ociRuntime !== undefined && { ociRuntime }),
  };
}

function envEntry({ name, valueSource }: EnvVar): EnvEntry {
  switch (valueSource?.$case) {
    case undefined:
      return { name, value: "" };
    case "value":
      return { name, value: valueSource.value };
    case "secretRef":
      return { name, secret: valueSource.value.secretName, key: valueSource.value.key };
    case "configRef":
      return { name, config: valueSource.value.configName, key: valueSource.value.key };
    case "fieldRef":
      if (isPodField(valueSource.value)) return { name, field: valueSource.value };
      throw new Error(`env ${name}: ${JSON.stringify(valueSource.value)} is not a field of a pod`);
    case "resourceFieldRef":
      if (isResourceField(valueSource.value)) return { name, resourceField: valueSource.value };
      throw new Error(`env ${name}: ${JSON.stringify(valueSource.value)} is not a resource of a container`);
    default:
      return valueSource satisfies never;
  }
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

/** Returns the port. @throws Error if the port is invalid, or if the host doesn't support its protocol. */
export function portOf(
  container: string,
  { containerPort, protocol }: ContainerPort,
  host: HostFeatures,
): PodContainer["ports"][number] {
  if (!(containerPort >= 1 && containerPort <= PORT_MAX)) throw new Error(`${containerPort} is not a port`);
  switch (protocol) {
    case "":
      return { container, containerPort, protocol: "TCP" };
    case "SCTP":
      if (!host.sctp) throw new Error(`port ${containerPort}: this host's kernel has no SCTP (module sctp)`);
      return { container, containerPort, protocol };
    case "TCP":
    case "UDP":
      return { container, containerPort, protocol };
    default:
      throw new Error(`${JSON.stringify(protocol)} is not a protocol`);
  }
}

function ociRuntimeOf(runtimeClass: string, { runtimeClasses }: HostFeatures): string | undefined {
  if (runtimeClass === "") return undefined;
  if (Object.hasOwn(runtimeClasses, runtimeClass)) return runtimeClasses[runtimeClass];
  throw new Error(
    `this host has no runtime class ${JSON.stringify(runtimeClass)}: see runtimeClasses of its agent`,
  );
}
