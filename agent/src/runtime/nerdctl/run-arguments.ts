import { pathToFileURL } from "node:url";
import { normalizeImage } from "../image-reference.ts";
import { type ContainerSpec, RuntimeError } from "../runtime.ts";

/** What a `nerdctl run` needs besides the container's own spec. */
export interface RunPlace {
  /** nerdctl writes the container's id here before anything else. Must not exist. */
  readonly idFile: string;
  /** Where nerdctl reads `NAME=VALUE` lines; undefined: there are none. */
  readonly envFile: string | undefined;
  /** Names whose values it takes from its own environment. */
  readonly inheritedNames: readonly string[];
  /** Labels that mark the container as this agent's. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whether this nerdctl knows `--no-healthcheck` (2.1 on). */
  readonly knowsHealthcheck: boolean;
}

// nerdctl's own rule for names, with a limit that leaves room in a file name.
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,199}$/;

// The kernel takes no smaller CPU quota than 1 ms in a period of 100 ms.
const CPU_LIMIT_MIN_MILLI = 10;

// Bounds of cpu.shares.
const CPU_SHARES_MIN = 2;
const CPU_SHARES_MAX = 262_144;

/**
 * The arguments after nerdctl's global options. Every user's string is either the tail of `--option=` or stands behind `--`,
 * so that none can become an option: `run … -- IMAGE -- WORD…`. The first `--` ends nerdctl's options; nerdctl drops the second,
 * which must be there always, or it would drop a user's own first `--`.
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
    `--network=ns:${checkPath("network namespace", spec.networkNamespace)}`,
    `--hostname=${spec.hostname}`,
    `--log-driver=${pathToFileURL(spec.logFile).href}`,
    // A health check that the image brings would be run by systemd timers, behind our back.
    ...(place.knowsHealthcheck ? ["--no-healthcheck"] : []),
    ...Object.entries({ ...spec.labels, ...place.labels }).map(([key, value]) => `--label=${key}=${value}`),
    ...(place.envFile === undefined ? [] : [`--env-file=${place.envFile}`]),
    ...place.inheritedNames.map((name) => `--env=${name}`),
    ...(spec.workingDir === undefined ? [] : [`--workdir=${spec.workingDir}`]),
    ...spec.binds.map(mountOption),
    ...limitOptions(spec),
    ...(entrypoint === undefined ? [] : [`--entrypoint=${entrypoint}`]),
    "--",
    image,
    "--",
    ...words,
  ];
}

function mountOption({ source, target, readOnly }: ContainerSpec["binds"][number]): string {
  // `--mount` and not `--volume`: that one makes a missing source on the host.
  const fields = [
    "type=bind",
    `source=${checkPath("mount", source)}`,
    `target=${checkPath("mount", target)}`,
  ];
  return `--mount=${[...fields, ...(readOnly ? ["readonly"] : [])].join(",")}`;
}

function limitOptions({ cpuLimitMilli, memoryLimitBytes, cpuShares }: ContainerSpec): string[] {
  const options: string[] = [];
  if (cpuLimitMilli !== undefined) {
    options.push(`--cpus=${(Math.max(CPU_LIMIT_MIN_MILLI, cpuLimitMilli) / 1000).toFixed(3)}`);
  }
  // Equal limits mean no swap; left out, nerdctl would allow as much swap as memory.
  if (memoryLimitBytes !== undefined) {
    options.push(`--memory=${memoryLimitBytes}`, `--memory-swap=${memoryLimitBytes}`);
  }
  if (cpuShares !== undefined) {
    options.push(`--cpu-shares=${Math.min(CPU_SHARES_MAX, Math.max(CPU_SHARES_MIN, cpuShares))}`);
  }
  return options;
}

function checkName(name: string): string {
  if (NAME.test(name)) return name;
  throw new RuntimeError("START_FAILED", `${JSON.stringify(name)} can't be a container's name`, {
    retryable: false,
  });
}

// nerdctl splits these options at commas and colons and knows no quoting.
function checkPath(what: string, path: string): string {
  if (path.startsWith("/") && !/[,:"\n\0]/.test(path)) return path;
  throw new RuntimeError(
    "START_FAILED",
    `${what} path ${JSON.stringify(path)}: must be absolute, without comma, colon, quote or line break`,
    { retryable: false },
  );
}
