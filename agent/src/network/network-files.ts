import { chmod, mkdir, open, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import type { Pod, PodContainer, PodNetworkSpec } from "../pods/pod.ts";
import { hostsOfHost, podHosts } from "./hosts-file.ts";
import { NetworkError } from "./network.ts";
import {
  type ClusterDns,
  formatResolvConf,
  isReachableFromPods,
  parseResolvConf,
  podResolvConf,
  type ResolvConf,
} from "./resolv-conf.ts";

/**
 * Provides containers' `/etc/hosts` and `/etc/resolv.conf`. The real implementation is `HostNetworkFiles`, the fake
 * `FakeNetworkFiles`.
 */
export interface NetworkFiles {
  /**
   * Writes the files and returns their mounts. Call it right before each start of a container. The files are removed
   * with the pod's directory. Rejects with a {@link NetworkError}.
   */
  binds(
    pod: NetworkFilesPod,
    container: NetworkFilesContainer,
    podIps: readonly string[],
  ): Promise<readonly FileBind[]>;
}

export type NetworkFilesPod = Pick<Pod, "uid" | "namespace" | "hostname" | "network">;
export type NetworkFilesContainer = Pick<PodContainer, "name" | "mounts" | "security" | "rootLimitBytes">;

/** A bind mount in the form of `ContainerSpec.binds`. */
export interface FileBind {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface HostNetworkFilesOptions {
  /** The parent of the pods' directories, which are named by uid. */
  readonly podsDir: string;
  readonly cluster: ClusterDns;
  /** The directory of the host's own files; `/etc` by default. */
  readonly etc?: string;
  /** Read instead if all name servers of `/etc/resolv.conf` are on the loopback interface, as with systemd-resolved. */
  readonly resolvedConf?: string;
}

const HOSTS = "/etc/hosts";
const RESOLV_CONF = "/etc/resolv.conf";
// The leading dot keeps it distinct from container names.
const DIRECTORY = ".network";
const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
// A larger file is not a plausible configuration.
const HOST_FILE_BYTES_MAX = 256 * 1024;

const DEFAULT_NETWORK: PodNetworkSpec = {
  hostNetwork: false,
  dnsPolicy: "ClusterFirst",
  nameservers: [],
  searches: [],
  options: [],
};

/**
 * Keeps files for each container, `<podsDir>/<uid>/.network/<container>/{hosts,resolv.conf}`. They are readable for
 * everyone and, as in Kubernetes, writable for the container unless its root is read-only or limited.
 */
export class HostNetworkFiles implements NetworkFiles {
  readonly #options: HostNetworkFilesOptions;

  constructor(options: HostNetworkFilesOptions) {
    this.#options = options;
  }

  async binds(
    pod: NetworkFilesPod,
    container: NetworkFilesContainer,
    podIps: readonly string[],
  ): Promise<readonly FileBind[]> {
    const mounted = new Set((container.mounts ?? []).map(({ mountPath }) => mountPath));
    const readOnly = isReadOnlyFor(container);
    const texts = [
      [HOSTS, "hosts", () => this.#hosts(pod, podIps)],
      [RESOLV_CONF, "resolv.conf", () => this.#resolvConf(pod)],
    ] as const;
    try {
      const binds: FileBind[] = [];
      for (const [target, name, text] of texts) {
        // The pod's own mounts take precedence.
        if (mounted.has(target)) continue;
        binds.push({
          source: await this.#write(pod.uid, container.name, name, await text()),
          target,
          readOnly,
        });
      }
      return binds;
    } catch (cause) {
      const message = `hosts and resolv.conf: ${messageOf(cause)}`;
      throw new NetworkError("SETUP_FAILED", message, { retryable: true, cause });
    }
  }

  async #hosts({ hostname, network }: NetworkFilesPod, podIps: readonly string[]): Promise<string> {
    if (!network?.hostNetwork) return podHosts(hostname, podIps);
    return hostsOfHost(await readHostFile(join(this.#etc, "hosts")));
  }

  async #resolvConf({ namespace, network = DEFAULT_NETWORK }: NetworkFilesPod): Promise<string> {
    const host = await this.#hostsResolvConf();
    return formatResolvConf(podResolvConf({ namespace, network }, host, this.#options.cluster));
  }

  async #hostsResolvConf(): Promise<ResolvConf> {
    const own = parseResolvConf(await readHostFile(join(this.#etc, "resolv.conf")));
    if (own.nameservers.some(isReachableFromPods)) return own;
    const { resolvedConf = "/run/systemd/resolve/resolv.conf" } = this.#options;
    const { nameservers } = parseResolvConf(await readHostFile(resolvedConf));
    return { ...own, nameservers: [...own.nameservers, ...nameservers] };
  }

  /** Writes a file and renames it, so that other runs of the container keep their version. */
  async #write(podUid: string, container: string, name: string, text: string): Promise<string> {
    for (const it of [podUid, container]) {
      if (!SAFE_NAME.test(it)) throw new Error(`${JSON.stringify(it)} can't be a directory's name`);
    }
    const directory = join(this.#options.podsDir, podUid, DIRECTORY, container);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, name);
    await writeFile(`${path}.new`, text);
    // Set explicitly, because the process's umask would restrict it and containers run as any user.
    await chmod(`${path}.new`, 0o644);
    await rename(`${path}.new`, path);
    return path;
  }

  get #etc(): string {
    return this.#options.etc ?? "/etc";
  }
}

/** Keeps the files of pods in memory. */
export class FakeNetworkFiles implements NetworkFiles {
  async binds(
    pod: NetworkFilesPod,
    container: NetworkFilesContainer,
    _podIps: readonly string[],
  ): Promise<readonly FileBind[]> {
    const readOnly = isReadOnlyFor(container);
    const mounted = new Set((container.mounts ?? []).map(({ mountPath }) => mountPath));
    return [HOSTS, RESOLV_CONF]
      .filter((target) => !mounted.has(target))
      .map((target) => ({ source: `/fake/${pod.uid}/${container.name}${target}`, target, readOnly }));
  }
}

/**
 * Reports whether the container must not write to the files, because its root is read-only or its writes are limited.
 */
function isReadOnlyFor({ security, rootLimitBytes }: NetworkFilesContainer): boolean {
  return (security?.readOnlyRootFilesystem ?? false) || rootLimitBytes !== undefined;
}

/** Returns the file's text, or an empty string if it doesn't exist. */
async function readHostFile(path: string): Promise<string> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return "";
  try {
    const { bytesRead, buffer } = await file.read(
      Buffer.alloc(HOST_FILE_BYTES_MAX),
      0,
      HOST_FILE_BYTES_MAX,
      0,
    );
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
