import { pathToFileURL } from "node:url";
import { normalizeImage } from "../image-reference.ts";
import {
  type BindMount,
  type ContainerSpec,
  HOST_NETWORK,
  type HostDevice,
  NO_NETWORK,
  RuntimeError,
} from "../runtime.ts";
import { checkPath } from "./check-path.ts";
import { securityOptions, userOption } from "./security-options.ts";
import { memorySwapOf, tuningOptions } from "./tuning-options.ts";

/** The inputs of `nerdctl run` other than the container's spec. */
export interface RunPlace {
  /** The file to which nerdctl writes the container's id before anything else. Must not exist. */
  readonly idFile: string;
  /** The file of `NAME=VALUE` lines for nerdctl. Undefined if there are no variables. */
  readonly envFile: string | undefined;
  /** Names of variables whose values nerdctl takes from its own environment. */
  readonly inheritedNames: readonly string[];
  /** Labels that identify the container as this agent's. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whether this nerdctl supports `--no-healthcheck` (from 2.1). */
  readonly knowsHealthcheck: boolean;
  /** Whether the host has SELinux and this nerdctl supports it. */
  readonly selinux: boolean;
  readonly appArmor: boolean;
  /** The image's USER. Used only if `needsImageUser` returns true. */
  readonly imageUser: string;
  /** The program that writes a terminal's output to the file named by its last argument. */
  readonly terminalLogger: string;
  /**
   * The program that copies the output to the pipes in a directory, and that directory. Undefined if the container
   * needs neither.
   */
  readonly streamLogger: { readonly program: string; readonly dir: string } | undefined;
  /**
   * A wrapper around the spec's OCI runtime that opens the container's streams. Undefined: the spec's runtime itself.
   */
  readonly ownRuntime: string | undefined;
}

// nerdctl's own rule for names, with a limit that leaves room in a file name.
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,199}$/;

// The kernel accepts no CPU quota below 1 ms in a period of 100 ms.
const CPU_LIMIT_MIN_MILLI = 10;

// The bounds of cpu.shares.
const CPU_SHARES_MIN = 2;
const CPU_SHARES_MAX = 262_144;

/**
 * Returns the arguments after nerdctl's global options: `run … -- IMAGE -- WORD…`. Every string from a user is either
 * the tail of `--option=` or follows `--`, so that none can become an option. The first `--` ends nerdctl's options.
 * nerdctl drops the second one; without it, nerdctl would drop a user's own first `--`.
 */
export function runArguments(spec: ContainerSpec, place: RunPlace): readonly string[] {
  const image = normalizeImage(spec.image);
  const [entrypoint, ...rest] = spec.command;
  const words = entrypoint === undefined ? spec.args : [...rest, ...spec.args];
  return [
    "run",
    "--detach",
    "--restart=no",
    "--pull=never",
    `--name=${checkName(spec.name)}`,
    `--cidfile=${place.idFile}`,
    ...networkOptions(spec),
    ...streamOptions(spec, place),
    // systemd timers would run a health check of the image without the agent's control.
    ...(place.knowsHealthcheck ? ["--no-healthcheck"] : []),
    ...Object.entries({ ...spec.labels, ...place.labels }).map(([key, value]) => `--label=${key}=${value}`),
    ...(place.envFile === undefined ? [] : [`--env-file=${place.envFile}`]),
    ...place.inheritedNames.map((name) => `--env=${name}`),
    ...(spec.workingDir === undefined ? [] : [`--workdir=${spec.workingDir}`]),
    ...spec.binds.map(mountOption),
    ...limitOptions(spec),
    ...tuningOptions(spec.tuning),
    ...userOption(spec.user, place.imageUser),
    ...securityOptions(spec, place),
    ...(spec.devices ?? []).map(deviceOption),
    ...(entrypoint === undefined ? [] : [`--entrypoint=${entrypoint}`]),
    "--",
    image,
    "--",
    ...words,
  ];
}

/**
 * Returns the options for the network. A container on the host's network also has the host's name, as in Kubernetes;
 * nerdctl does that itself (its `--uts=host` fails to start).
 */
function networkOptions({ networkNamespace, hostname }: ContainerSpec): string[] {
  if (networkNamespace === HOST_NETWORK) return ["--network=host"];
  if (networkNamespace === NO_NETWORK) return ["--network=none", `--hostname=${hostname}`];
  return [`--network=ns:${checkPath("network namespace", networkNamespace)}`, `--hostname=${hostname}`];
}

/**
 * Returns the options for streams. containerd's shim appends the output to the file by itself and provides no input. It
 * passes a terminal's output only to a program. The terminal's input stays open as long as the shim holds the terminal.
 */
function streamOptions({ logFile, tty, ociRuntime }: ContainerSpec, place: RunPlace): string[] {
  const given = ociRuntime === undefined ? undefined : checkRuntime(ociRuntime);
  const name = place.ownRuntime ?? given;
  const runtime = name === undefined ? [] : [`--runtime=${name}`];
  const terminal = tty ? ["--tty"] : [];
  const { streamLogger, terminalLogger } = place;
  if (streamLogger !== undefined)
    return [...terminal, loggerOption(streamLogger.program, "dir", streamLogger.dir), ...runtime];
  if (tty) return [...terminal, loggerOption(terminalLogger, "log", logFile), ...runtime];
  return [`--log-driver=${pathToFileURL(logFile).href}`, ...runtime];
}

/**
 * Returns the option for a logging program. nerdctl requires one `key=value`, and passes both to the program as
 * arguments.
 */
function loggerOption(program: string, key: string, value: string): string {
  const logger = new URL(`binary://${pathToFileURL(program).pathname}`);
  logger.searchParams.set(key, value);
  return `--log-driver=${logger.href}`;
}

function mountOption({ source, target, readOnly, propagation }: BindMount): string {
  // `--volume` would create a missing source on the host; `--mount` fails instead.
  const fields = [
    "type=bind",
    `source=${checkPath("mount", source)}`,
    `target=${checkPath("mount", target)}`,
  ];
  if (propagation !== undefined) fields.push(`bind-propagation=${propagation}`);
  return `--mount=${[...fields, ...(readOnly ? ["readonly"] : [])].join(",")}`;
}

function deviceOption({ hostPath, containerPath, permissions }: HostDevice): string {
  if (!/^[rwm]{1,3}$/.test(permissions))
    throw refusal(`device ${JSON.stringify(hostPath)}: permissions must be of r, w and m`);
  return `--device=${checkPath("device", hostPath)}:${checkPath("device", containerPath)}:${permissions}`;
}

function limitOptions({ cpuLimitMilli, memoryLimitBytes, cpuShares, tuning }: ContainerSpec): string[] {
  const options: string[] = [];
  if (cpuLimitMilli !== undefined) {
    options.push(`--cpus=${(Math.max(CPU_LIMIT_MIN_MILLI, cpuLimitMilli) / 1000).toFixed(3)}`);
  }
  // Equal limits disable swap. Without the option, nerdctl would allow as much swap as memory.
  if (memoryLimitBytes !== undefined) {
    options.push(`--memory=${memoryLimitBytes}`, `--memory-swap=${memorySwapOf(tuning, memoryLimitBytes)}`);
  }
  if (cpuShares !== undefined) {
    options.push(`--cpu-shares=${Math.min(CPU_SHARES_MAX, Math.max(CPU_SHARES_MIN, cpuShares))}`);
  }
  return options;
}

function checkName(name: string): string {
  if (NAME.test(name)) return name;
  throw refusal(`${JSON.stringify(name)} can't be a container's name`);
}

/**
 * Checks an OCI runtime: a shim's name such as `io.containerd.kata.v2`, or the path of a program with runc's arguments.
 */
function checkRuntime(runtime: string): string {
  if (/^(\/[^\n\0]{1,4000}|[A-Za-z0-9][A-Za-z0-9._-]{0,199})$/.test(runtime)) return runtime;
  throw refusal(`${JSON.stringify(runtime)} can't be an OCI runtime: a path or a name`);
}

function refusal(message: string): RuntimeError {
  return new RuntimeError("START_FAILED", message, { retryable: false });
}
