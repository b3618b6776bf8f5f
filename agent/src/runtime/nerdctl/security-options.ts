import { capabilityName, checkSecurity } from "../check-security.ts";
import { type ContainerSecurity, type ContainerSpec, type ContainerUser, RuntimeError } from "../runtime.ts";
import { checkPath } from "./check-path.ts";

/**
 * `--user`; `imageUser` is the image's USER, which is only needed for a group without a user: nerdctl takes no group alone.
 * Undefined: as the image says.
 */
export function userOption(user: ContainerUser | undefined, imageUser: string): readonly string[] {
  const groups = (user?.supplementalGroups ?? []).map((gid) => `--group-add=${gid}`);
  if (user?.name !== undefined) return [`--user=${user.name}`, ...groups];
  if (user?.uid === undefined && user?.gid === undefined) return groups;
  const name = user.uid ?? (imageUser.split(":", 1)[0] || "0");
  return [`--user=${name}${user.gid === undefined ? "" : `:${user.gid}`}`, ...groups];
}

/** The features of the host that some options need. */
export interface SecurityModules {
  readonly selinux: boolean;
  readonly appArmor: boolean;
}

/** Returns nerdctl's options. Without any they are nerdctl's defaults, which are Docker's. */
export function securityOptions(
  spec: ContainerSpec,
  { selinux, appArmor }: SecurityModules,
): readonly string[] {
  checkSecurity(spec);
  const { security } = spec;
  if (security === undefined) return [];
  return [
    ...(security.readOnlyRootFilesystem ? ["--read-only"] : []),
    ...(security.privileged ? ["--privileged"] : []),
    ...(security.allowPrivilegeEscalation ? [] : ["--security-opt=no-new-privileges"]),
    // ALL is dropped before, single ones after what is added: nerdctl's order is Kubernetes' own.
    ...security.capabilities.add.map((it) => `--cap-add=${capabilityName(it)}`),
    ...security.capabilities.drop.map((it) => `--cap-drop=${capabilityName(it)}`),
    ...seccompOption(security.seccomp),
    ...appArmorOption(security.appArmorProfile, appArmor),
    ...selinuxOptions(security.seLinuxType, selinux),
  ];
}

function seccompOption(seccomp: ContainerSecurity["seccomp"]): readonly string[] {
  switch (seccomp.type) {
    case "RuntimeDefault":
      return [];
    case "Unconfined":
      return ["--security-opt=seccomp=unconfined"];
    case "Localhost":
      return [`--security-opt=seccomp=${checkPath("seccomp profile", seccomp.path)}`];
    default:
      return seccomp satisfies never;
  }
}

/** Without AppArmor nerdctl only warns. */
function appArmorOption(profile: string | undefined, appArmor: boolean): readonly string[] {
  if (profile === undefined) return [];
  if (!/^[A-Za-z0-9/][A-Za-z0-9_./@+-]*$/.test(profile))
    throw refusal(`${JSON.stringify(profile)} is no AppArmor profile`);
  if (!appArmor) throw refusal(`AppArmor profile ${profile}: this host has no AppArmor`);
  return [`--security-opt=apparmor=${profile}`];
}

/** nerdctl labels processes only on request, and doesn't report it if the host can't. */
function selinuxOptions(type: string | undefined, selinux: boolean): readonly string[] {
  if (type === undefined) return [];
  if (!/^[A-Za-z0-9_]+$/.test(type)) throw refusal(`${JSON.stringify(type)} is no SELinux type`);
  if (!selinux)
    throw refusal(`se_linux_type ${type}: this host has no SELinux, or its nerdctl can't use it (2.3 can)`);
  return ["--selinux-enabled", `--security-opt=label=type:${type}`];
}

function refusal(message: string): RuntimeError {
  return new RuntimeError("START_FAILED", message, { retryable: false });
}
