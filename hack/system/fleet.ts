import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import { findPodCidr, virtualIpsBeside } from "../instance/pod-cidr.ts";
import { type RunResult, run } from "../lib/run.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { askForage, forageInProcess } from "./forage-in-process.ts";
import { type Daemon, daemon, freeAddresses, waitForReady } from "./system.ts";

/**
 * A coordinator and several nodes on one machine. Each node has its own containerd and network, and a bridge joins
 * them.
 */
export interface Fleet {
  readonly nodes: readonly FleetNode[];
  readonly coordinator: Daemon;
  /** Each node's address on the bridge of its pods, at which their name server listens. */
  readonly podGateway: string;
  /** The same address for IPv6; empty in a fleet without IPv6. */
  readonly podGateway6: string;
  /** Runs the command. The caller must check its exit code. */
  forage(args: readonly string[], input?: string): Promise<RunResult>;
  /** Does the same as `forage`, but within this process. Standard output is text. */
  forageInProcess(args: readonly string[], input?: string): Promise<RunResult>;
  /** Runs the command in this process and parses its JSON output. Throws if it fails. */
  ask<T>(args: readonly string[]): Promise<T>;
  close(): Promise<void>;
}

export interface FleetNode {
  readonly name: string;
  /** The IPv4 address at which the other nodes and this machine reach it; empty if it has none. */
  readonly address: string;
  /** The same for IPv6; empty in a fleet without IPv6. */
  readonly address6: string;
  readonly host: TestHost;
  readonly agent: Daemon;
  /** Disconnects the node from the network, or connects it again. */
  connected(yes: boolean): Promise<void>;
  /** Blocks only the packets between the node and the coordinator, or unblocks them. */
  hearsCoordinator(yes: boolean): Promise<void>;
}

const root = join(import.meta.dirname, "..", "..");
const READY_LIMIT_MS = 60_000;

export interface FleetOptions {
  /** Whether hosts and pods have IPv6, too. Agents then reach the coordinator over IPv6. */
  readonly dualStack?: boolean;
  /** The number of hosts without IPv4 at the end of a dual-stack fleet. */
  readonly ipv6Only?: number;
  /** Whether services of type LoadBalancer get addresses of the nodes' network. */
  readonly balancers?: boolean;
  /** Additional settings of every agent. */
  readonly agent?: Readonly<Record<string, unknown>>;
}

/** The port on which each node's agent serves Destination. */
export const DESTINATION_PORT = 8086;

export async function startFleet(
  size: number,
  coordinatorSettings: Readonly<Record<string, unknown>> = {},
  options: FleetOptions = {},
): Promise<Fleet> {
  await bundlePrograms({ root, outDir: join(root, "dist"), programs: PROGRAMS });
  const hosts: TestHost[] = [];
  const close = async (): Promise<void> => {
    for (const host of hosts) await host.close();
  };
  try {
    for (let i = 0; i < size; i++) hosts.push(await startTestHost());
    return { ...(await build(hosts, coordinatorSettings, options)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function build(
  hosts: readonly TestHost[],
  coordinatorSettings: Readonly<Record<string, unknown>>,
  { dualStack = false, ipv6Only = 0, balancers = false, agent = {} }: FleetOptions,
): Promise<Omit<Fleet, "close">> {
  const [main] = hosts;
  if (main === undefined) throw new RangeError("a fleet has nodes");
  // A part of the range reserved for network measurements, chosen by this process's id.
  const prefix = `198.18.${process.pid % 256}`;
  const bridge = `br-${main.name}`;
  await run("ip", ["link", "add", bridge, "type", "bridge"]);
  await run("ip", ["address", "add", `${prefix}.1/24`, "dev", bridge]);
  await run("ip", ["link", "set", bridge, "up"]);
  const grpcPort = 20_000 + (process.pid % 10_000);
  const ipv6 = dualStack ? ipv6Places(process.pid) : undefined;
  if (ipv6) await run("ip", ["address", "add", `${ipv6.hosts}1/64`, "dev", bridge, "nodad"]);
  const grpc = ipv6 ? `[${ipv6.hosts}1]:${grpcPort}` : `${prefix}.1:${grpcPort}`;
  const [http = ""] = await freeAddresses(1);
  const podCidr = await findPodCidr(main.name);
  const data = join(main.dir, "coordinator");
  const tokenFile = join(main.dir, "admin-token");
  const coordinatorConfig = write(main, "coordinator", {
    dataDir: data,
    grpc: { listen: ipv6 ? `[::]:${grpcPort}` : grpc },
    ...(ipv6 && { names: [`${ipv6.hosts}1`] }),
    http: { listen: http },
    adminTokenFile: tokenFile,
    services: {
      virtualIps: virtualIpsBeside(podCidr),
      ...(ipv6 && { virtualIps6: ipv6.virtualIps }),
      ...(balancers && {
        loadBalancerIps: [`${prefix}.200-${prefix}.209`, ...(ipv6 ? [`${ipv6.hosts}c8/125`] : [])],
      }),
    },
    ...coordinatorSettings,
  });
  const coordinator = daemon(main, "coordinator", coordinatorConfig);
  await waitForReady(http, coordinator);
  const cli = write(main, "cli", { server: grpc, caFile: join(data, "ca.crt"), tokenFile });
  const forage: Fleet["forage"] = (args, input) =>
    run(process.execPath, [join(root, "dist", "forage.mjs"), ...args], {
      env: { FORAGE_CONFIG: cli },
      allowFailure: true,
      timeoutMs: 180_000,
      ...(input !== undefined && { input }),
    });
  const env = { FORAGE_CONFIG: cli };
  const ask: Fleet["ask"] = (args) => askForage(args, env);
  const nodes: FleetNode[] = [];
  for (const [index, host] of hosts.entries()) {
    const address = `${prefix}.${index + 2}`;
    const { token } = await ask<{ token: string }>(["token", "create", "--node", `n${index + 1}`]);
    nodes.push(
      await startNode({
        host,
        name: `n${index + 1}`,
        address: index < hosts.length - ipv6Only ? address : "",
        address6: ipv6 ? `${ipv6.hosts}${index + 2}` : "",
        bridge,
        gateway: `${prefix}.1`,
        grpc,
        podCidr,
        podCidr6: ipv6 && `${ipv6.pods}/64`,
        token,
        settings: agent,
      }),
    );
  }
  const ready = async (): Promise<boolean> => {
    const found = await ask<{ ready?: boolean }[]>(["node", "ls"]);
    return found.length === hosts.length && found.every((node) => node.ready === true);
  };
  await waitFor(ready, { what: "all nodes are ready", limitMs: READY_LIMIT_MS });
  const podGateway = podCidr.replace(/\.0\/\d+$/, ".1");
  return {
    nodes,
    coordinator,
    podGateway,
    podGateway6: ipv6 ? `${ipv6.pods}1` : "",
    forage,
    forageInProcess: (args, input) => forageInProcess(args, env, input),
    ask,
  };
}

/** Returns private networks that differ for each process. */
function ipv6Places(pid: number): {
  readonly hosts: string;
  readonly pods: string;
  readonly virtualIps: string;
} {
  const own = (pid % 0x1_0000).toString(16);
  return { hosts: `fd18:${own}::`, pods: `fd64:${own}::`, virtualIps: `fd96:${own}::/112` };
}

interface NodePlaces {
  readonly host: TestHost;
  readonly name: string;
  readonly address: string;
  /** Empty if it has none, as for `address`. */
  readonly address6: string;
  readonly bridge: string;
  readonly gateway: string;
  readonly grpc: string;
  /** The range of pods, the same on every node, as on separate hosts. */
  readonly podCidr: string;
  readonly podCidr6: string | undefined;
  readonly token: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

async function startNode({
  host,
  name,
  address,
  address6,
  bridge,
  gateway,
  grpc,
  podCidr,
  podCidr6,
  token,
  settings,
}: NodePlaces): Promise<FleetNode> {
  // The cleanup of the host finds it by the host's name.
  const network = `net-${host.name}`;
  const link = `v-${host.name}`;
  await run("ip", ["netns", "add", network]);
  await run("ip", ["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", network]);
  await run("ip", ["link", "set", link, "master", bridge, "up"]);
  const inside = ["-n", network];
  if (address !== "") await run("ip", [...inside, "address", "add", `${address}/24`, "dev", "eth0"]);
  for (const it of ["lo", "eth0"]) await run("ip", [...inside, "link", "set", it, "up"]);
  if (address6 !== "")
    await run("ip", [...inside, "address", "add", `${address6}/64`, "dev", "eth0", "nodad"]);
  if (address !== "") await run("ip", [...inside, "route", "add", "default", "via", gateway]);
  writeFileSync(join(host.dir, "join-token"), token, { mode: 0o600 });
  const config = write(host, "agent", {
    dataDir: join(host.dir, "agent"),
    runDir: join(host.dir, "run"),
    coordinator: grpc,
    joinTokenFile: join(host.dir, "join-token"),
    nodeName: name,
    instance: host.name,
    podCidr,
    // The agent itself determines its IPv6 address.
    ...(podCidr6 && { podCidr6 }),
    containerd: { address: host.containerd.address, namespace: host.namespace },
    nerdctl: host.nerdctlPath,
    cniBinDir: "/usr/lib/cni",
    http: { listen: "127.0.0.1:7602" },
    destination: { port: DESTINATION_PORT },
    ...(address !== "" && { advertiseAddress: address }),
    ...settings,
  });
  const connected = async (yes: boolean): Promise<void> => {
    await run("ip", ["link", "set", link, yes ? "up" : "down"]);
  };
  const port = grpc.split(":").at(-1);
  const hearsCoordinator = async (yes: boolean): Promise<void> => {
    const table = `table inet cut {
      chain in { type filter hook input priority -300; tcp sport ${port} drop; }
      chain out { type filter hook output priority -300; tcp dport ${port} drop; }
    }\n`;
    const input = yes ? "delete table inet cut\n" : table;
    await run("nsenter", [`--net=/run/netns/${network}`, "--", "nft", "-f", "-"], { input });
  };
  const agent = daemon(host, "agent", config, { network });
  return { name, address, address6, host, agent, connected, hearsCoordinator };
}

function write(host: TestHost, name: string, content: unknown): string {
  mkdirSync(host.dir, { recursive: true });
  const path = join(host.dir, `${name}.yaml`);
  writeFileSync(path, stringify(content));
  return path;
}
