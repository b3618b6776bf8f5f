import { posix } from "node:path";
import type { Container, Volume } from "@forage/proto/forest/v1/forage";
import { RESERVED_CLASS_PREFIX } from "../../model/priority.ts";
import type { Field } from "../validate/field.ts";
import { parseHostPath } from "./host-path.ts";
import { containersOf, type PlacedContainer, type PlacedPod } from "./pod-parts.ts";
import type { EffectivePolicy } from "./policy.ts";

/** The capabilities that Kubernetes' baseline profile allows, which container runtimes grant by default. */
const BASELINE_CAPABILITIES: ReadonlySet<string> = new Set([
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "MKNOD",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
]);
const RESTRICTED_CAPABILITIES: ReadonlySet<string> = new Set(["NET_BIND_SERVICE"]);
const SELINUX_TYPES: ReadonlySet<string> = new Set([
  "",
  "container_t",
  "container_init_t",
  "container_kvm_t",
  "container_engine_t",
]);
const RESTRICTED_VOLUMES: ReadonlySet<string> = new Set(["emptyDir", "secret", "configMap", "pvc"]);

/** Reports every field of the pod that the policy doesn't allow. */
export function checkPolicy(placed: PlacedPod, policy: EffectivePolicy): void {
  checkLists(placed, policy);
  if (policy.profile === "privileged") return;
  checkBaseline(placed, policy);
  if (policy.profile === "restricted") checkRestricted(placed, policy);
}

/** Checks devices, runtime classes and host ports, which the policy's lists limit under every profile. */
function checkLists(placed: PlacedPod, policy: EffectivePolicy): void {
  const { podConfig } = placed.pod;
  const config = placed.field.at("pod_config");
  const runtime = podConfig?.runtimeClassName ?? "";
  if (runtime !== "" && policy.runtimeClasses.length > 0 && !policy.runtimeClasses.includes(runtime))
    refuse(config.at("runtime_class_name"), policy, `the runtime class ${quote(runtime)}`, "--runtime-class");
  for (const { container, field } of containersOf(placed)) {
    if (policy.devices.length > 0) checkDevices(container, field, policy);
    if (podConfig?.hostNetwork === true) checkHostPorts(container, field, policy);
  }
}

function checkDevices({ resources }: Container, field: Field, policy: EffectivePolicy): void {
  for (const part of ["requests", "limits"] as const)
    for (const name of Object.keys(resources?.[part]?.extended ?? {}))
      if (!policy.devices.includes(name))
        refuse(
          field.at("resources").at(part).at("extended").key(name),
          policy,
          `the device ${quote(name)}`,
          `--device ${name}`,
        );
}

function checkHostPorts({ ports }: Container, field: Field, policy: EffectivePolicy): void {
  if (policy.hostPorts.length === 0) return;
  for (const [index, { containerPort }] of ports.entries())
    if (!policy.hostPorts.some((range) => portIn(containerPort, range)))
      refuse(
        field.at("ports").item(index).at("container_port"),
        policy,
        `port ${containerPort} of the host`,
        `--host-port ${containerPort}`,
      );
}

function portIn(port: number, range: string): boolean {
  const [first = "", last = first] = range.split("-");
  return port >= Number(first) && port <= Number(last);
}

function checkBaseline(placed: PlacedPod, policy: EffectivePolicy): void {
  const { pod, field } = placed;
  const config = field.at("pod_config");
  if (pod.podConfig?.hostNetwork === true && !policy.hostNetwork)
    refuse(config.at("host_network"), policy, "the host's network", "--host-network");
  // Such pods preempt the pods of all other namespaces.
  if (pod.podConfig?.priorityClassName.startsWith(RESERVED_CLASS_PREFIX))
    refuse(config.at("priority_class_name"), policy, "a system priority class");
  checkSeccomp(
    pod.podConfig?.securityContext?.seccompProfile,
    config.at("security_context").at("seccomp_profile"),
    policy,
  );
  for (const [index, volume] of pod.volumes.entries())
    checkHostPath(volume, field.at("volumes").item(index), placed, policy);
  for (const { container, field: at } of containersOf(placed)) checkContainer(container, at, policy);
}

function checkContainer(
  { securityContext: context }: Container,
  field: Field,
  policy: EffectivePolicy,
): void {
  if (context === undefined) return;
  const at = field.at("security_context");
  if (context.privileged) {
    if (!policy.privileged) refuse(at.at("privileged"), policy, "privileged containers", "--privileged");
    return;
  }
  for (const [index, name] of (context.capabilities?.add ?? []).entries())
    if (!BASELINE_CAPABILITIES.has(name) && !policy.capabilities.includes(name))
      refuse(
        at.at("capabilities").at("add").item(index),
        policy,
        `the capability ${quote(name)}`,
        `--capability ${name}`,
      );
  if (!SELINUX_TYPES.has(context.seLinuxType)) refuse(at.at("se_linux_type"), policy, "this SELinux type");
  checkSeccomp(context.seccompProfile, at.at("seccomp_profile"), policy);
}

/**
 * Checks a seccomp profile. A profile at an absolute path could be a file that a pod has written, and that allows every
 * system call.
 */
function checkSeccomp(profile = "", field: Field, policy: EffectivePolicy): void {
  if (profile === "Unconfined") refuse(field, policy, "seccomp profile Unconfined");
  else if (profile.startsWith("/")) refuse(field, policy, "a seccomp profile at an absolute path");
}

function checkHostPath(
  { name, source }: Volume,
  field: Field,
  placed: PlacedPod,
  policy: EffectivePolicy,
): void {
  if (source?.$case !== "hostPath") return;
  const at = field.at("host_path").at("path");
  const { path } = source.value;
  const covering = policy.hostPaths.map(parseHostPath).filter(({ prefix }) => isBelow(path, prefix));
  if (covering.length === 0) refuse(at, policy, `the host's path ${quote(path)}`, `--host-path ${path}`);
  else if (covering.every(({ readOnly }) => readOnly)) checkReadOnly(name, placed, policy);
}

function checkReadOnly(volume: string, placed: PlacedPod, policy: EffectivePolicy): void {
  for (const { container, field } of containersOf(placed))
    for (const [index, mount] of container.volumeMounts.entries())
      if (mount.name === volume && !mount.readOnly)
        field
          .at("volume_mounts")
          .item(index)
          .at("read_only")
          .invalid(
            `must be true: the policy of namespace ${quote(policy.namespace)} allows only read access to this host path`,
          );
}

function isBelow(path: string, prefix: string): boolean {
  const [inner, outer] = [posix.normalize(`${path}/`), posix.normalize(`${prefix}/`)];
  return inner.startsWith(outer);
}

function checkRestricted(placed: PlacedPod, policy: EffectivePolicy): void {
  const { pod, field } = placed;
  // The prefixes of the policy allow the host paths that are left here.
  for (const [index, { source }] of pod.volumes.entries())
    if (source !== undefined && source.$case !== "hostPath" && !RESTRICTED_VOLUMES.has(source.$case))
      refuse(
        field.at("volumes").item(index),
        policy,
        "volumes other than empty_dir, secret, config_map and pvc",
      );
  for (const container of containersOf(placed)) checkRestrictedContainer(container, pod.podConfig, policy);
}

function checkRestrictedContainer(
  { container, field }: PlacedContainer,
  podConfig: PlacedPod["pod"]["podConfig"],
  policy: EffectivePolicy,
): void {
  const context = container.securityContext;
  const at = field.at("security_context");
  if (context?.privileged === true) return;
  if (context?.allowPrivilegeEscalation === true)
    refuse(at.at("allow_privilege_escalation"), policy, "privilege escalation");
  if (!(context?.runAsNonRoot || podConfig?.securityContext?.runAsNonRoot))
    demand(at.at("run_as_non_root"), policy, "must be true");
  if (!context?.capabilities?.drop.includes("ALL"))
    demand(at.at("capabilities").at("drop"), policy, 'must hold "ALL"');
  for (const [index, name] of (context?.capabilities?.add ?? []).entries())
    if (BASELINE_CAPABILITIES.has(name) && !isRestrictedCapability(name, policy))
      refuse(
        at.at("capabilities").at("add").item(index),
        policy,
        `the capability ${quote(name)}`,
        `--capability ${name}`,
      );
}

function isRestrictedCapability(name: string, policy: EffectivePolicy): boolean {
  return RESTRICTED_CAPABILITIES.has(name) || policy.capabilities.includes(name);
}

function refuse(field: Field, policy: EffectivePolicy, what: string, flag?: string): void {
  const { namespace, profile, role } = policy;
  const whose = role === "global" ? "" : " for tokens limited to namespaces";
  const help =
    flag === undefined
      ? "leave it out"
      : `leave it out, or have an admin allow it: \`forage namespace policy set ${namespace} ${flag}\`, together with the flags of the current policy`;
  field.invalid(
    `the policy of namespace ${quote(namespace)}${whose} (profile ${profile}) doesn't allow ${what}: ${help}`,
  );
}

function demand(field: Field, { namespace, profile }: EffectivePolicy, what: string): void {
  field.invalid(`${what}: the policy of namespace ${quote(namespace)} has the profile ${profile}`);
}

function quote(text: string): string {
  return JSON.stringify(text.length <= 100 ? text : `${text.slice(0, 100)}…`);
}
