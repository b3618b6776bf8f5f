import { existsSync } from "node:fs";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";

/** The features of the host's kernel that some options need. */
export interface HostFeatures {
  readonly appArmor: boolean;
  readonly seLinux: boolean;
  readonly cgroupVersion: 1 | 2;
  /** Whether POSIX message queues are mounted, which a task in the host's IPC namespace gets. */
  readonly messageQueues: boolean;
}

/** Reads the features from the kernel's file systems. */
export function readHostFeatures(): HostFeatures {
  return {
    appArmor: existsSync("/sys/kernel/security/apparmor/profiles"),
    seLinux: existsSync("/sys/fs/selinux/policy"),
    // Only hosts without cgroup v1 have this file at the root.
    cgroupVersion: existsSync("/sys/fs/cgroup/cgroup.controllers") ? 2 : 1,
    messageQueues: existsSync("/dev/mqueue"),
  };
}

type Options = Pick<TaskOptions, "appArmorProfile" | "seLinuxType" | "memorySwappiness" | "hostNamespaces">;

/** Throws INVALID for options that this host does not support. A runtime would ignore some of them silently. Pure. */
export function checkHostFeatures(
  { appArmorProfile, seLinuxType, memorySwappiness, hostNamespaces }: Options,
  relabelled: readonly string[],
  { appArmor, seLinux, cgroupVersion, messageQueues }: HostFeatures,
): void {
  const problems = [
    appArmorProfile !== undefined && !appArmor && "config.apparmor_profile: this host has no AppArmor",
    seLinuxType !== undefined && !seLinux && "config.selinux_opts: this host has no SELinux",
    memorySwappiness !== undefined &&
      cgroupVersion === 2 &&
      "config.memory_swappiness: this host has cgroup v2, which has no such setting",
    hostNamespaces.includes("ipc") &&
      !messageQueues &&
      "config.ipc_mode: this host has no /dev/mqueue, which a task in its IPC namespace needs",
    ...relabelled.map(
      (path) =>
        `mount ${JSON.stringify(path)}: selinux_label: ${
          seLinux ? "the driver does not relabel files: label them on the host" : "this host has no SELinux"
        }`,
    ),
  ].filter((it) => it !== false);
  if (problems.length > 0) throw new DriverError("INVALID", problems.join("; "));
}
