import { join } from "node:path";
import type {
  Capabilities,
  ContainerSecurityContext,
  PodSecurityContext,
} from "@forage/proto/forest/v1/forage";
import type { HostFeatures } from "../host-features.ts";
import type { PodContainer } from "../pods/pod.ts";
import type { ContainerSecurity, ContainerUser } from "../runtime/runtime.ts";
import type { PodVolumeSpec } from "../volumes/volumes.ts";

// Kubernetes' range: a positive 32-bit number.
const ID_MAX = 2 ** 31 - 1;
const CAPABILITY = /^[A-Z][A-Z_]{1,62}$/;
// SELinux' own rule for the names of types.
const SE_LINUX_TYPE = /^[A-Za-z][A-Za-z0-9_.]{0,254}$/;

/**
 * Parses a container's security context. The container's values take precedence over the pod's. On the wire 0, false
 * and "" mean unset, so a container can't unset a value of its pod. As in Kubernetes, privilege escalation is allowed
 * if the container has no security context. If it has one, `no_new_privs` is set unless its field allows privilege
 * escalation. Privileged containers and those with SYS_ADMIN may always gain privileges.
 */
export function parseSecurity(
  own: ContainerSecurityContext | undefined,
  pod: PodSecurityContext | undefined,
  host: Pick<HostFeatures, "seLinux" | "seccompDir">,
): Pick<PodContainer, "user" | "security"> {
  const user = userOf(own, pod);
  const { seLinuxType = "" } = own ?? {};
  if (seLinuxType !== "" && !host.seLinux) throw new Error("se_linux_type: this host has no SELinux");
  if (seLinuxType !== "" && !SE_LINUX_TYPE.test(seLinuxType)) {
    throw new Error(`se_linux_type: ${JSON.stringify(seLinuxType)} is not a type's name`);
  }
  const runAsNonRoot = (own?.runAsNonRoot ?? false) || (pod?.runAsNonRoot ?? false);
  const profile = own?.seccompProfile || pod?.seccompProfile || "";
  // Without any settings the runtime's own defaults apply.
  if (own === undefined && !runAsNonRoot && profile === "") return user === undefined ? {} : { user };
  const capabilities = capabilitiesOf(own?.capabilities);
  const privileged = own?.privileged ?? false;
  const security: ContainerSecurity = {
    runAsNonRoot,
    readOnlyRootFilesystem: own?.readOnlyRootFilesystem ?? false,
    privileged,
    allowPrivilegeEscalation: mayEscalate(own, capabilities.add),
    capabilities,
    seccomp: seccompOf(profile, host.seccompDir),
    ...(seLinuxType !== "" && { seLinuxType }),
  };
  return { ...(user && { user }), security };
}

/** Returns the container's user. As in Kubernetes, its processes also get the group of the volumes. */
function userOf(
  own: ContainerSecurityContext | undefined,
  pod: PodSecurityContext | undefined,
): ContainerUser | undefined {
  const uid = idOf("run_as_user", own?.runAsUser) ?? idOf("run_as_user", pod?.runAsUser);
  const gid = idOf("run_as_group", own?.runAsGroup) ?? idOf("run_as_group", pod?.runAsGroup);
  const groups = (pod?.supplementalGroups ?? []).map((it) => checkedId("supplemental_groups", it));
  const fsGroup = idOf("fs_group", pod?.fsGroup);
  const supplementalGroups = [...new Set([...groups, ...(fsGroup === undefined ? [] : [fsGroup])])];
  if (uid === undefined && gid === undefined && supplementalGroups.length === 0) return undefined;
  return { ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }), supplementalGroups };
}

/** Parses `fs_group`. Returns undefined if volumes keep their owners. */
export function parseFsGroup(pod: PodSecurityContext | undefined): PodVolumeSpec["fsGroup"] {
  const gid = idOf("fs_group", pod?.fsGroup);
  const policy = pod?.fsGroupChangePolicy ?? "";
  if (policy !== "" && policy !== "Always" && policy !== "OnRootMismatch") {
    throw new Error(`fs_group_change_policy: ${JSON.stringify(policy)} is neither Always nor OnRootMismatch`);
  }
  return gid === undefined ? undefined : { gid, changePolicy: policy || "Always" };
}

function idOf(field: string, id: bigint | undefined): number | undefined {
  return id === undefined || id === 0n ? undefined : checkedId(field, id);
}

function checkedId(field: string, id: bigint): number {
  if (id < 0n || id > ID_MAX) throw new Error(`${field}: ${id} is not an id`);
  return Number(id);
}

function capabilitiesOf({
  add = [],
  drop = [],
}: Partial<Capabilities> = {}): ContainerSecurity["capabilities"] {
  return { add: add.map(capability), drop: drop.map(capability) };
}

function capability(name: string): string {
  const plain = name.toUpperCase().replace(/^CAP_/, "");
  if (CAPABILITY.test(plain)) return plain;
  throw new Error(`capabilities: ${JSON.stringify(name)} is not a capability`);
}

function mayEscalate(own: ContainerSecurityContext | undefined, added: readonly string[]): boolean {
  if (own === undefined || own.allowPrivilegeEscalation || own.privileged) return true;
  return added.includes("SYS_ADMIN") || added.includes("ALL");
}

function seccompOf(profile: string, directory: string): ContainerSecurity["seccomp"] {
  if (profile === "" || profile === "RuntimeDefault") return { type: "RuntimeDefault" };
  if (profile === "Unconfined") return { type: "Unconfined" };
  if (profile.split("/").includes("..") || /[\0\n]/.test(profile)) {
    throw new Error(`seccomp_profile: ${JSON.stringify(profile)} can't be a profile's path`);
  }
  return { type: "Localhost", path: profile.startsWith("/") ? profile : join(directory, profile) };
}
