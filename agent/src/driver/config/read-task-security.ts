import { capabilityName } from "../../runtime/check-security.ts";
import type { TaskPolicy } from "./driver-options.ts";
import { oneOf, parseAbsolutePath } from "./parse-values.ts";
import { type Section, shown } from "./section.ts";
import type { HostNamespace, SeccompProfile } from "./task-options.ts";

/** The largest id that runc accepts. */
const GROUP_ID_MAX = 2 ** 31 - 1;

/** Reads the options that restrict a task or extend its rights. */
export function readSecurity(section: Section, policy: TaskPolicy) {
  const capability = (text: string): string => {
    const name = capabilityName(text);
    return name === "ALL" ? name : `CAP_${name}`;
  };
  const allowed = (text: string): string => {
    const name = capability(text);
    if (policy.allowCaps.includes("ALL") || policy.allowCaps.includes(name)) return name;
    throw new Error(`${name} is not in the plugin's allow_caps`);
  };
  const runtime = section.parsed("runtime", (text) => {
    if (policy.allowRuntimes.includes(text)) return text;
    throw new Error(`${shown(text)} is not in the plugin's allow_runtimes`);
  });
  const privileged = section.flag("privileged", false);
  if (privileged && !policy.allowPrivileged)
    section.problem("privileged", "the plugin's allow_privileged is not set");
  const noNewPrivileges = section.flag("no_new_privileges", false);
  if (privileged && noNewPrivileges) section.problem("no_new_privileges", "excludes privileged");
  return {
    capAdd: section.parsedEach("cap_add", allowed),
    capDrop: section.parsedEach("cap_drop", capability),
    privileged,
    noNewPrivileges,
    readonlyRootfs: section.flag("readonly_rootfs", false),
    seccompProfile: readSeccomp(section, policy),
    ...readProfiles(section, policy),
    ...readNamespaces(section, policy),
    groupAdd: section.parsedEach("group_add", parseGroupId),
    ...(runtime !== undefined && { runtime }),
  };
}

function readSeccomp(section: Section, policy: TaskPolicy): SeccompProfile {
  const profile = section.parsed("seccomp_profile", (text): SeccompProfile => {
    if (text === "default") return { type: "default" };
    if (text !== "unconfined") return { type: "file", path: parseAbsolutePath(text) };
    if (!policy.allowPrivileged) throw new Error("unconfined needs the plugin's allow_privileged");
    return { type: "unconfined" };
  });
  return profile ?? { type: "default" };
}

function parseGroupId(text: string): number {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : -1;
  if (id >= 0 && id <= GROUP_ID_MAX) return id;
  throw new Error(`must be a group ID from 0 to ${GROUP_ID_MAX}, and is ${shown(text)}`);
}

// The characters of a profile's name, which exclude white space and separators of options.
const APPARMOR_PROFILE = /^[A-Za-z0-9/][A-Za-z0-9_./@+-]{0,254}$/;
const SELINUX_TYPE = /^type:([A-Za-z0-9_]{1,255})$/;

function readProfiles(section: Section, { allowPrivileged }: TaskPolicy) {
  const appArmorProfile = section.parsed("apparmor_profile", (text) => {
    if (!APPARMOR_PROFILE.test(text)) throw new Error(`must be a profile's name, and is ${shown(text)}`);
    if (text === "unconfined" && !allowPrivileged)
      throw new Error("unconfined needs the plugin's allow_privileged");
    return text;
  });
  const types = section.parsedEach("selinux_opts", (text) => {
    const type = SELINUX_TYPE.exec(text)?.[1];
    if (type === undefined)
      throw new Error(
        `must be type:TYPE, the only part of a label that the runtime sets, and is ${shown(text)}`,
      );
    return type;
  });
  if (types.length > 1) section.problem("selinux_opts", "a task has one SELinux type");
  const [seLinuxType] = types;
  return {
    ...(appArmorProfile !== undefined && { appArmorProfile }),
    ...(seLinuxType !== undefined && { seLinuxType }),
  };
}

function readNamespaces(section: Section, { allowPrivileged }: TaskPolicy) {
  const hostNamespaces = (["pid", "ipc"] as const).filter((kind): kind is HostNamespace => {
    const mode = section.parsed(`${kind}_mode`, oneOf(["private", "host"]));
    if (mode === "host" && !allowPrivileged)
      section.problem(`${kind}_mode`, "host needs the plugin's allow_privileged");
    return mode === "host";
  });
  const cgroupNamespace = section.parsed("cgroupns", oneOf(["private", "host"]));
  return { hostNamespaces, ...(cgroupNamespace !== undefined && { cgroupNamespace }) };
}
