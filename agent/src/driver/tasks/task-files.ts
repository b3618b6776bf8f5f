import { mkdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import { hostsOfHost, podHosts } from "../../network/hosts-file.ts";
import {
  formatResolvConf,
  isReachableFromPods,
  parseResolvConf,
  type ResolvConf,
} from "../../network/resolv-conf.ts";
import { type BindMount, HOST_NETWORK } from "../../runtime/runtime.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";

export interface TaskFilesInput {
  /** The task's directory for such files, created if missing. */
  readonly dir: string;
  readonly task: TaskConfig;
  readonly options: TaskOptions;
  readonly networkNamespace: string;
  readonly hostname: string;
  /** The task's own address, if the driver or Nomad assigned one. */
  readonly address: string | undefined;
}

// The container's user has to read the files.
const FILE_MODE = 0o644;

/**
 * Writes /etc/resolv.conf and /etc/hosts of a task. On the host's network, the host's files are used unless the job
 * overrides them.
 */
export async function writeTaskFiles(input: TaskFilesInput): Promise<readonly BindMount[]> {
  const { dir, options, networkNamespace, hostname, address } = input;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const onHost = networkNamespace === HOST_NETWORK;
  const binds: BindMount[] = [];
  const put = async (name: string, target: string, text: string): Promise<void> => {
    await writeFile(join(dir, name), text, { mode: FILE_MODE });
    binds.push({ source: join(dir, name), target, readOnly: false });
  };
  const dns = resolvConfOf(input, parseResolvConf(await readText("/etc/resolv.conf")));
  if (dns !== undefined) await put("resolv.conf", "/etc/resolv.conf", formatResolvConf(dns));
  if (!onHost || options.extraHosts.length > 0) {
    const base = onHost
      ? hostsOfHost(await readText("/etc/hosts"))
      : podHosts(hostname, address ? [address] : []);
    const extra = options.extraHosts.map((it) => `${it.address}\t${it.name}\n`).join("");
    await put("hosts", "/etc/hosts", `${base}${extra}`);
  }
  return binds;
}

/**
 * Returns the job's own DNS settings, else Nomad's, else the host's servers that the task can reach. Undefined: the
 * host's file unchanged.
 */
function resolvConfOf(
  { task, options, networkNamespace }: TaskFilesInput,
  host: ResolvConf,
): ResolvConf | undefined {
  const { dns } = task;
  const nomads = dns && dns.servers.length + dns.searches.length + dns.options.length > 0 ? dns : undefined;
  const desired = options.dns ?? nomads;
  const onHost = networkNamespace === HOST_NETWORK;
  if (desired === undefined && onHost) return undefined;
  const reachable = onHost ? host.nameservers : host.nameservers.filter(isReachableFromPods);
  return {
    nameservers: desired?.servers.length ? desired.servers : reachable,
    searches: desired?.searches.length ? desired.searches : host.searches,
    options: desired?.options.length ? desired.options : host.options,
  };
}

/**
 * Resolves the job's bind mounts and named volumes. A path in the task's directory must not lead out of it, not even by
 * a link.
 */
export async function resolveMounts(
  task: TaskConfig,
  { mounts }: TaskOptions,
  { dataDir }: Pick<DriverOptions, "dataDir">,
): Promise<readonly BindMount[]> {
  const binds: BindMount[] = [];
  for (const mount of mounts) {
    if (mount.type === "tmpfs") continue;
    const { target, readonly: readOnly } = mount;
    if (mount.type === "volume") {
      const source = join(dataDir, "volumes", mount.source);
      await mkdir(source, { recursive: true, mode: 0o755 });
      binds.push({ source, target, readOnly });
      continue;
    }
    const source = mount.sourceInTaskDir ? await insideTaskDir(task, mount.source) : mount.source;
    binds.push({ source, target, readOnly, propagation: mount.propagation });
  }
  return binds;
}

async function insideTaskDir({ allocDir, name }: TaskConfig, source: string): Promise<string> {
  const root = await realpath(join(allocDir, name));
  const found = await realpath(join(root, source)).catch(() => undefined);
  if (found === undefined)
    throw new DriverError(
      "INVALID",
      `mount source ${JSON.stringify(source)} is not in the task's directory: create it with an artifact or a template`,
    );
  if (found === root || found.startsWith(`${root}/`)) return found;
  throw new DriverError(
    "INVALID",
    `mount source ${JSON.stringify(source)} leads out of the task's directory`,
  );
}

/** Rejects log paths that are neither a pipe nor /dev/null, because a task must not write anywhere else. */
export async function checkStreams({ stdoutPath, stderrPath }: TaskConfig): Promise<void> {
  for (const path of [stdoutPath, stderrPath]) {
    if (path === "" || path === "/dev/null") continue;
    const found = await stat(path).catch((cause: unknown) => {
      throw new DriverError("FAILED_PRECONDITION", `the task's log pipe ${path} is missing`, {
        recoverable: true,
        cause,
      });
    });
    if (!found.isFIFO())
      throw new DriverError("INVALID", `the task's log ${path} is neither a pipe nor /dev/null`);
  }
}

function readText(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
