import type { Container, PodConfig, Volume } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { type ContainerRole, validateContainer } from "./container.ts";
import { validatePodConfig } from "./pod-config.ts";
import { checkResourceSums } from "./resource-sums.ts";
import { validateVolume } from "./volume.ts";
import { checkMounts } from "./volume-mount.ts";

/** The fields of a workload's spec that make its pods. */
export interface PodFields {
  readonly container: Container | undefined;
  readonly sidecars?: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly podConfig: PodConfig | undefined;
}

/** The limit of containers, because each has its own processes and supervision. */
const MAX_CONTAINERS = 32;
const MAX_VOLUMES = 64;
/** The name of the volume in which agents give a pod the token of its service account. */
const IDENTITY_VOLUME = "forage-identity";

interface Placed {
  readonly container: Container;
  readonly role: ContainerRole;
  readonly field: Field;
}

export function validatePod(pod: PodFields, field: Field): void {
  if (pod.container === undefined) field.at("container").invalid("must be set");
  const containers = containersOf(pod, field);
  for (const { container, role, field: at } of containers) validateContainer(container, role, at);
  const volumes = field.at("volumes");
  for (const [index, volume] of pod.volumes.entries()) validateVolume(volume, volumes.item(index));
  if (pod.podConfig !== undefined) validatePodConfig(pod.podConfig, field.at("pod_config"));
  checkCounts(pod, field);
  const together = containers.filter(({ role }) => role !== "init");
  checkResourceSums(together.map((it) => ({ container: it.container, field: it.field.at("resources") })));
  checkNames(pod.volumes.map(({ name }, index) => ({ name, field: volumes.item(index).at("name") })));
  checkNames(containers.map(({ container, field: at }) => ({ name: container.name, field: at.at("name") })));
  checkNames(containers.flatMap(portNames));
  if (pod.podConfig?.hostNetwork) checkNames(containers.flatMap(hostPorts));
  for (const [index, { name }] of pod.volumes.entries())
    if (name === IDENTITY_VOLUME)
      volumes.item(index).at("name").invalid("is the name of the agent's own volume");
  const known = new Set(pod.volumes.map(({ name }) => name));
  for (const { container, field: at } of containers)
    checkMounts(container.volumeMounts, known, at.at("volume_mounts"));
}

function containersOf({ container, sidecars = [], initContainers = [] }: PodFields, field: Field): Placed[] {
  const main = container === undefined ? [] : [container];
  return [
    ...main.map((c): Placed => ({ container: c, role: "main", field: field.at("container") })),
    ...sidecars.map(
      (c, index): Placed => ({ container: c, role: "sidecar", field: field.at("sidecars").item(index) }),
    ),
    ...initContainers.map(
      (c, index): Placed => ({ container: c, role: "init", field: field.at("init_containers").item(index) }),
    ),
  ];
}

function checkCounts({ sidecars = [], initContainers = [], volumes }: PodFields, field: Field): void {
  const tooMany = (items: readonly unknown[], max: number, name: string): void => {
    if (items.length > max) field.at(name).invalid(`must be at most ${max}, but ${items.length} were given`);
  };
  tooMany(sidecars, MAX_CONTAINERS, "sidecars");
  tooMany(initContainers, MAX_CONTAINERS, "init_containers");
  tooMany(volumes, MAX_VOLUMES, "volumes");
}

/**
 * Returns the container's port names, which must be unique among containers that run at the same time. Init containers have
 * ended by then.
 */
function portNames({ container, role, field }: Placed): { readonly name: string; readonly field: Field }[] {
  if (role === "init") return [];
  return container.ports.map(({ name }, index) => ({
    name,
    field: field.at("ports").item(index).at("name"),
  }));
}

/**
 * Returns the container's ports if it uses the host's network, where each port can be used once. Init containers don't
 * conflict, because they have ended by then.
 */
function hostPorts({ container, role, field }: Placed): { readonly name: string; readonly field: Field }[] {
  if (role === "init") return [];
  return container.ports.map(({ containerPort, protocol }, index) => ({
    name: `${containerPort}/${protocol === "" ? "TCP" : protocol}`,
    field: field.at("ports").item(index).at("container_port"),
  }));
}

function checkNames(named: readonly { readonly name: string; readonly field: Field }[]): void {
  const seen = new Map<string, Field>();
  for (const { name, field } of named) {
    if (name === "") continue;
    const first = seen.get(name);
    if (first === undefined) seen.set(name, field);
    else field.invalid(`is the same as ${first.path}`);
  }
}
