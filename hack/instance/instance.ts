import { randomInt } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * One coordinator with one agent on this machine, and the settings that distinguish it from others. Stored in its data
 * directory.
 */
export interface Instance {
  /**
   * `d` and seven letters or digits. Part of the names of the nftables table, bridge, network namespaces and containerd
   * namespace.
   */
  readonly id: string;
  readonly dataDir: string;
  readonly grpc: string;
  readonly http: string;
  readonly destination: string;
  readonly agentHttp: string;
  /** The first and last host port of the range for pods' ports. */
  readonly hostPortRange: string;
  /** The range of pods' addresses. */
  readonly podCidr: string;
  readonly nodeName: string;
  /** The address by which other hosts reach this host's pods. */
  readonly advertiseAddress: string;
  readonly containerd: { readonly address: string; readonly own: boolean };
  readonly nerdctl: string;
  /** If undefined, the coordinator keeps its records on the disk. */
  readonly etcd?: InstanceEtcd;
  /** If undefined, this node is not a gateway. */
  readonly gateway?: InstanceGateway;
  /** If undefined, no workspaces are served. */
  readonly workspaces?: InstanceWorkspaces;
  readonly cniBinDir: string;
  /** A digest of the deployed example. A second run does not deploy the same again. */
  readonly example?: string;
}

/** The etcd that the coordinator keeps its records in. */
export interface InstanceEtcd {
  readonly program: string;
  /** HOST:PORT on loopback, for the coordinator. */
  readonly client: string;
  /** HOST:PORT on loopback for other members, which etcd requires. */
  readonly peer: string;
}

/** The addresses at which routes are served, on loopback. */
export interface InstanceGateway {
  /** Envoy's program. */
  readonly envoy: string;
  readonly httpPort: number;
  readonly httpsPort: number;
}

/** The ports on loopback at which workspaces are reached. */
export interface InstanceWorkspaces {
  readonly ingressPort: number;
  readonly sshPort: number;
}

/** Returns the paths below an instance's data directory. */
export function instancePaths(dataDir: string) {
  return {
    record: join(dataDir, "instance.json"),
    lock: join(dataDir, "lock"),
    coordinatorData: join(dataDir, "coordinator"),
    agentData: join(dataDir, "agent"),
    containerd: join(dataDir, "containerd"),
    etcd: join(dataDir, "etcd"),
    programs: join(dataDir, "run"),
    logs: join(dataDir, "log"),
    coordinatorConfig: join(dataDir, "coordinator.yaml"),
    agentConfig: join(dataDir, "agent.yaml"),
    cliConfig: join(dataDir, "cli.yaml"),
    adminToken: join(dataDir, "admin-token"),
    joinToken: join(dataDir, "join-token"),
    ca: join(dataDir, "coordinator", "ca.crt"),
  };
}

export type InstancePaths = ReturnType<typeof instancePaths>;

/**
 * The directory for files of the instance's own containerd that belong to this boot only. Its path is short enough for a socket.
 */
export function instanceRunDir(id: string): string {
  return `/run/forage-${id}`;
}

export function containerdNamespace(id: string): string {
  return `forage-${id}`;
}

export function newInstanceId(): string {
  return `d${Array.from({ length: 7 }, () => randomInt(36).toString(36)).join("")}`;
}

/** Returns the instance of a data directory; `undefined` if none was completely made there. */
export function readInstance(dataDir: string): Instance | undefined {
  try {
    return JSON.parse(readFileSync(instancePaths(dataDir).record, "utf8")) as Instance;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export function writeInstance(instance: Instance): void {
  mkdirSync(instance.dataDir, { recursive: true, mode: 0o755 });
  writeIfChanged(instancePaths(instance.dataDir).record, `${JSON.stringify(instance, null, 2)}\n`, 0o600);
}

/** Replaces the file atomically if its content differs. Returns whether it did. */
export function writeIfChanged(path: string, content: string, mode: number): boolean {
  try {
    if (readFileSync(path, "utf8") === content) return false;
  } catch {
    // The file doesn't exist yet.
  }
  writeFileSync(`${path}.partial`, content, { mode });
  renameSync(`${path}.partial`, path);
  return true;
}
