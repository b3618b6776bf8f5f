import { hostname, networkInterfaces } from "node:os";
import { containerdPlaces } from "../lib/containerd.ts";
import { findCniBinDir } from "../lib/host-tools.ts";
import { SetupError } from "../lib/setup-error.ts";
import type { UpFlags } from "./flags.ts";
import { assertContainerd, findHostContainerd } from "./host-containerd.ts";
import {
  type Instance,
  type InstanceEtcd,
  type InstanceGateway,
  type InstanceWorkspaces,
  instancePaths,
  instanceRunDir,
  newInstanceId,
  readInstance,
} from "./instance.ts";
import { findPodCidr } from "./pod-cidr.ts";
import { claimPorts, releasePorts } from "./port-claim.ts";
import { assertPortFree, isPortFree } from "./port-holder.ts";
import { readRunning } from "./program.ts";

/** The number of reserved ports at the start of a range: the agent's, two of the gateway, and two of workspaces. */
const OWN_PORTS = 5;
/** The number of ports of the instance's etcd, which follow: for its clients and for other members. */
const ETCD_PORTS = 2;
const DEFAULTS = { grpc: "127.0.0.1:7600", http: "127.0.0.1:7601", destination: "127.0.0.1:8086" } as const;

/** Returns the instance of the flags' data directory, or creates it on the first run. */
export async function settleInstance(
  flags: UpFlags,
  nerdctl: string,
  envoy: string | undefined,
  etcd: string | undefined,
): Promise<Instance> {
  const before = readInstance(flags.dataDir);
  const cniBinDir = findCniBinDir();
  if (!cniBinDir) {
    const advice = "apt-get install containernetworking-plugins";
    throw new SetupError("MISSING_TOOL", "there are no CNI plugins", advice);
  }
  const fixed = before ?? (await newInstance(flags));
  const gateway = envoy === undefined ? undefined : await settleGateway(envoy, before ?? fixed);
  assertSameStore(fixed, flags);
  const instance: Instance = {
    ...fixed,
    ...(fixed.etcd && etcd !== undefined && { etcd: { ...fixed.etcd, program: etcd } }),
    grpc: flags.grpc ?? fixed.grpc,
    http: flags.http ?? fixed.http,
    destination: flags.destination ?? fixed.destination,
    advertiseAddress: findOwnAddress(),
    nerdctl,
    ...(gateway && { gateway }),
    ...(flags.workspaces && { workspaces: settleWorkspaces(fixed) }),
    cniBinDir,
  };
  try {
    await assertContainerdUsable(instance, flags);
    await assertPortsFree(instance, before);
  } catch (error) {
    if (!before) releasePorts(instance.id);
    throw error;
  }
  return instance;
}

/** Returns the usual ports if they are free, and otherwise two of the instance's own. They never change. */
async function settleGateway(
  envoy: string,
  { gateway, agentHttp }: Pick<Instance, "gateway" | "agentHttp">,
): Promise<InstanceGateway> {
  if (gateway !== undefined) return { ...gateway, envoy };
  const usual = await Promise.all([80, 443].map((port) => isPortFree("127.0.0.1", port)));
  if (usual.every((free) => free)) return { envoy, httpPort: 80, httpsPort: 443 };
  const first = portOf(agentHttp);
  return { envoy, httpPort: first + 1, httpsPort: first + 2 };
}

/**
 * Returns the ports for workspaces. Throws SetupError for an instance of an older checkout, in which pods use these
 * ports.
 */
function settleWorkspaces({
  workspaces,
  agentHttp,
  hostPortRange,
  dataDir,
}: Pick<Instance, "workspaces" | "agentHttp" | "hostPortRange" | "dataDir">): InstanceWorkspaces {
  const first = portOf(agentHttp);
  if (Number(hostPortRange.split("-")[0]) < first + OWN_PORTS)
    throw new SetupError(
      "BAD_USAGE",
      `the instance in ${dataDir} has no ports for workspaces`,
      "run hack/down first, or choose another --data",
    );
  return workspaces ?? { ingressPort: first + 3, sshPort: first + 4 };
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

function assertSameStore({ dataDir, etcd }: Pick<Instance, "dataDir" | "etcd">, { store }: UpFlags): void {
  const present = etcd === undefined ? "disk" : "etcd";
  if (store === undefined || store === present) return;
  throw new SetupError(
    "BAD_USAGE",
    `the records of ${dataDir} are in the engine ${present}, not ${store}`,
    "run hack/down first, or choose another --data",
  );
}

async function assertContainerdUsable({ dataDir, containerd }: Instance, flags: UpFlags): Promise<void> {
  if (flags.containerd && flags.containerd !== containerd.address) {
    throw new SetupError(
      "BAD_USAGE",
      `the containers in ${dataDir} are in ${containerd.address}, not ${flags.containerd}`,
      "run hack/down first, or choose another --data",
    );
  }
  if (!containerd.own) await assertContainerd(containerd.address);
}

async function newInstance(flags: UpFlags): Promise<Omit<Instance, "nerdctl" | "cniBinDir">> {
  const id = newInstanceId();
  const hostContainerd = flags.containerd ?? (await findHostContainerd());
  const own = containerdPlaces(instancePaths(flags.dataDir).containerd, instanceRunDir(id));
  const { first, last } = await claimPorts({ id, dataDir: flags.dataDir });
  const isEtcd = flags.store === "etcd";
  return {
    id,
    dataDir: flags.dataDir,
    ...DEFAULTS,
    agentHttp: `127.0.0.1:${first}`,
    ...(isEtcd && { etcd: etcdOf(first + OWN_PORTS) }),
    hostPortRange: `${first + OWN_PORTS + (isEtcd ? ETCD_PORTS : 0)}-${last}`,
    podCidr: await findPodCidr(id),
    nodeName: nodeNameOf(hostname()),
    advertiseAddress: "",
    containerd: hostContainerd
      ? { address: hostContainerd, own: false }
      : { address: own.address, own: true },
  };
}

function etcdOf(port: number): InstanceEtcd {
  return { program: "", client: `127.0.0.1:${port}`, peer: `127.0.0.1:${port + 1}` };
}

// Ports that our own running daemons have are not checked, but those that they are about to use are.
async function assertPortsFree(instance: Instance, before: Instance | undefined): Promise<void> {
  const { programs } = instancePaths(instance.dataDir);
  const held = new Set<string>();
  if (before && readRunning(programs, "coordinator")) for (const name of LISTENERS) held.add(before[name]);
  if (before && readRunning(programs, "agent")) held.add(before.agentHttp);
  for (const name of LISTENERS)
    if (!held.has(instance[name])) await assertPortFree(instance[name], `--${name}`);
  if (!held.has(instance.agentHttp)) await assertPortFree(instance.agentHttp, "the agent's HTTP port");
}

const LISTENERS = ["grpc", "http", "destination"] as const;

/** Returns a DNS label made of the host's name. */
export function nodeNameOf(host: string): string {
  const label = host
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return label.slice(0, 63) || "node";
}

// Pods' ports on loopback would only be reachable for this machine's own programs.
function findOwnAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}
