import { capabilityName, checkSecurity } from "../check-security.ts";
import { type ContainerSecurity, type ContainerSpec, type ContainerUser, RuntimeError } from "../runtime.ts";
import { checkPath } from "./check-path.ts";

/**
 * Returns the `--user` option. `imageUser` is the image's USER; it is needed only for a group without a user, because
 * nerdctl accepts no group alone. Undefined: the image's user.
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

/** Returns nerdctl's options. Without options, nerdctl applies its defaults, which are Docker's. */
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
    // nerdctl drops ALL before it adds capabilities, and drops single ones afterwards, in the same order as Kubernetes.
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

/** Returns the option for AppArmor. Throws on a host without AppArmor, where nerdctl would only warn. */
function appArmorOption(profile: string | undefined, appArmor: boolean): readonly string[] {
  if (profile === undefined) return [];
  if (!/^[A-Za-z0-9/][A-Za-z0-9_./@+-]*$/.test(profile))
    throw refusal(`${JSON.stringify(profile)} is not the name of an AppArmor profile`);
  if (!appArmor) throw refusal(`AppArmor profile ${profile}: this host has no AppArmor`);
  return [`--security-opt=apparmor=${profile}`];
}

/**
 * Returns the options for SELinux. nerdctl labels processes only on request, and doesn't report that the host can't.
 */
function selinuxOptions(type: string | undefined, selinux: boolean): readonly string[] {
  if (type === undefined) return [];
  if (!/^[A-Za-z0-9_]+$/.test(type))
    throw refusal(`${JSON.stringify(type)} is not the name of an SELinux type`);
  if (!selinux)
    throw refusal(`se_linux_type ${type}: this host has no SELinux, or its nerdctl can't use it (2.3 can)`);
  return ["--selinux-enabled", `--security-opt=label=type:${type}`];
}

function refusal(message: string): RuntimeError {
  return new RuntimeError("START_FAILED", message, { retryable: false });
}
