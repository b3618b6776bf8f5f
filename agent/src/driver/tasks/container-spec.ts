import type { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import {
  type BindMount,
  type ContainerSpec,
  type ContainerTuning,
  HOST_NETWORK,
  type HostDevice,
} from "../../runtime/runtime.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";
import { limitsOf } from "./resource-limits.ts";

/** The parts that are prepared before a task's container is created. */
export interface ContainerPlace {
  readonly name: string;
  readonly image: string;
  readonly hostname: string;
  /** The path of a namespace, HOST_NETWORK or NO_NETWORK. */
  readonly networkNamespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The /etc/hosts and /etc/resolv.conf that the driver has written. */
  readonly files: readonly BindMount[];
  /** The job's `mounts`, with their sources resolved. */
  readonly mounts: readonly BindMount[];
  /** The file for the runtime's own messages. */
  readonly consoleFile: string;
  /** The host path of the init program. Undefined if the task has none. */
  readonly initProgram?: string;
  readonly cores: number;
}

/** Returns the container of a task. Throws INVALID for contradicting settings. Pure. */
export function containerSpec(task: TaskConfig, options: TaskOptions, place: ContainerPlace): ContainerSpec {
  const { command, args, entrypoint, workDir, runtime } = options;
  const user = task.user === "" ? {} : { name: task.user };
  const supplementalGroups = options.groupAdd;
  return {
    name: place.name,
    labels: place.labels,
    image: place.image,
    command: entrypoint,
    args: command === undefined ? args : [command, ...args],
    env: Object.entries(task.env).map(([name, value]) => ({ name, value })),
    ...(workDir !== undefined && { workingDir: workDir }),
    networkNamespace: place.networkNamespace,
    hostname: place.hostname,
    binds: inOrder([...place.files, ...taskDirectories(task), ...place.mounts, ...nomadMounts(task)]),
    ...limitsOf(task, options, place.cores).limits,
    logFile: place.consoleFile,
    tty: options.tty,
    // Without a terminal or another runtime's shim, the container writes directly to Nomad's pipes, with no process in
    // between.
    streamPipes: { stdout: task.stdoutPath || "/dev/null", stderr: task.stderrPath || "/dev/null" },
    ...((task.user !== "" || supplementalGroups.length > 0) && { user: { ...user, supplementalGroups } }),
    security: securityOf(options),
    devices: devicesOf(task, options),
    ...(runtime !== undefined && { ociRuntime: runtime }),
    tuning: tuningOf(task, options, place),
  };
}

function securityOf(options: TaskOptions): NonNullable<ContainerSpec["security"]> {
  const { seccompProfile, capAdd, capDrop, privileged, noNewPrivileges, readonlyRootfs } = options;
  const { appArmorProfile, seLinuxType } = options;
  return {
    runAsNonRoot: false,
    readOnlyRootFilesystem: readonlyRootfs,
    privileged,
    allowPrivilegeEscalation: !noNewPrivileges,
    capabilities: { add: capAdd, drop: capDrop },
    seccomp:
      seccompProfile.type === "file"
        ? { type: "Localhost", path: seccompProfile.path }
        : { type: seccompProfile.type === "default" ? "RuntimeDefault" : "Unconfined" },
    ...(appArmorProfile !== undefined && { appArmorProfile }),
    ...(seLinuxType !== undefined && { seLinuxType }),
  };
}

function tuningOf(task: TaskConfig, options: TaskOptions, place: ContainerPlace): ContainerTuning {
  const { pidsLimit, shmSizeBytes, oomScoreAdj, ulimits, sysctl, mounts } = options;
  const { hostNamespaces, cgroupNamespace } = options;
  if (place.networkNamespace === HOST_NETWORK && Object.keys(sysctl).some((it) => it.startsWith("net.")))
    throw new DriverError("INVALID", "sysctl: net.* cannot be set for a task on the host's network");
  const oomScore = oomScoreAdj ?? (Number(task.resources?.linuxResources?.oomScoreAdj ?? 0) || undefined);
  const tmpfs = mounts.flatMap((mount) => {
    if (mount.type !== "tmpfs") return [];
    return [{ target: mount.target, ...(mount.sizeBytes !== undefined && { sizeBytes: mount.sizeBytes }) }];
  });
  return {
    ...limitsOf(task, options, place.cores).tuning,
    ...(pidsLimit !== undefined && { pidsLimit }),
    ...(shmSizeBytes !== undefined && { shmBytes: shmSizeBytes }),
    ...(oomScore !== undefined && { oomScoreAdjustment: oomScore }),
    ...(place.initProgram !== undefined && { initProgram: place.initProgram }),
    ...(cgroupNamespace !== undefined && { cgroupNamespace }),
    ...{ ulimits, sysctls: sysctl, tmpfs, hostNamespaces },
  };
}

/** Mounts Nomad's directories of the task at the paths that the task's environment contains. */
function taskDirectories({ allocDir, name, env }: TaskConfig): readonly BindMount[] {
  if (allocDir === "") return [];
  const at = (variable: string, otherwise: string): string => env[variable] || otherwise;
  return [
    { source: `${allocDir}/alloc`, target: at("NOMAD_ALLOC_DIR", "/alloc"), readOnly: false },
    { source: `${allocDir}/${name}/local`, target: at("NOMAD_TASK_DIR", "/local"), readOnly: false },
    { source: `${allocDir}/${name}/secrets`, target: at("NOMAD_SECRETS_DIR", "/secrets"), readOnly: false },
  ];
}

/** Returns the mounts that Nomad requests: volumes, CSI and devices. */
function nomadMounts({ mounts }: TaskConfig): readonly BindMount[] {
  return mounts.map(({ taskPath, hostPath, readonly, propagationMode }) => ({
    source: hostPath,
    target: taskPath.startsWith("/") ? taskPath : `/${taskPath}`,
    readOnly: readonly,
    propagation: propagationOf(propagationMode),
  }));
}

function propagationOf(mode: string): NonNullable<BindMount["propagation"]> {
  switch (mode) {
    case "":
    case "private":
      return "rprivate";
    case "host-to-task":
      return "rslave";
    case "bidirectional":
      return "rshared";
    default:
      throw new DriverError(
        "INVALID",
        `mount propagation ${JSON.stringify(mode)}: must be private, host-to-task or bidirectional`,
      );
  }
}

function devicesOf({ devices }: TaskConfig, options: TaskOptions): readonly HostDevice[] {
  const nomads = devices.map(({ hostPath, taskPath, cgroupPermissions }) => ({
    hostPath,
    containerPath: taskPath || hostPath,
    permissions: cgroupPermissions || "rwm",
  }));
  return [...nomads, ...options.devices];
}

/** Sorts mounts, parents before the mounts within them. Throws INVALID if two mounts have the same target. */
function inOrder(binds: readonly BindMount[]): readonly BindMount[] {
  const targets = new Set<string>();
  for (const { target } of binds) {
    if (targets.has(target))
      throw new DriverError("INVALID", `two mounts have the target ${JSON.stringify(target)}`);
    targets.add(target);
  }
  return [...binds].sort((a, b) => (a.target < b.target ? -1 : 1));
}
