import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { stringify } from "yaml";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import { AGENT_ENVIRONMENT, AGENT_NODE_OPTIONS } from "../instance/describe-programs.ts";
import { findPodCidr, virtualIpsBeside } from "../instance/pod-cidr.ts";
import { type RunResult, run } from "../lib/run.ts";
import type { Program } from "../lib/spawn-program.ts";
import type { TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";

/** A coordinator and an agent as bundled, on a test host, and the `forage` command pointed at them. */
export interface System {
  readonly host: TestHost;
  readonly grpc: string;
  readonly http: string;
  readonly agentHttp: string;
  readonly destination: string;
  readonly caFile: string;
  readonly tokenFile: string;
  readonly coordinator: Daemon;
  readonly agent: Daemon;
  /** Runs the command; its exit code is the caller's to judge. */
  forage(args: readonly string[], input?: string): Promise<RunResult>;
  /** Runs it for what it prints as JSON; throws when it fails. */
  ask<T>(args: readonly string[]): Promise<T>;
}

/** A program that can be ended in every way and started again with the same configuration. */
export interface Daemon {
  readonly pid: number;
  readonly logPath: string;
  start(): void;
  /** SIGKILL, and waits until it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and waits until it is gone. */
  stop(): Promise<void>;
}

export interface SystemOptions {
  /** More settings for the agent's or the coordinator's file. */
  readonly agent?: Readonly<Record<string, unknown>>;
  readonly coordinator?: Readonly<Record<string, unknown>>;
}

const root = join(import.meta.dirname, "..", "..");
const nodeName = "n1";
const readyLimitMs = 60_000;

export async function startSystem(host: TestHost, options: SystemOptions = {}): Promise<System> {
  await bundlePrograms({ root, outDir: join(root, "dist"), programs: PROGRAMS });
  const [grpc = "", http = "", destination = "", agentHttp = ""] = await freeAddresses(4);
  const tokenFile = join(host.dir, "admin-token");
  const coordinatorData = join(host.dir, "coordinator");
  const podCidr = await findPodCidr(host.name);
  const configs = writeConfigs(host, {
    podCidr,
    grpc,
    http,
    destination,
    agentHttp,
    tokenFile,
    coordinatorData,
    ...options,
  });
  const forage: System["forage"] = (args, input) =>
    run(process.execPath, [join(root, "dist", "forage.mjs"), ...args], {
      env: { FORAGE_CONFIG: configs.cli },
      allowFailure: true,
      timeoutMs: 180_000,
      ...(input !== undefined && { input }),
    });
  const ask: System["ask"] = async (args) => {
    const { stdout, stderr, exitCode } = await forage([...args, "-o", "json"]);
    if (exitCode !== 0) throw new Error(`forage ${args.join(" ")}: ${stderr}`);
    return JSON.parse(stdout);
  };
  const coordinator = daemon(host, "coordinator", configs.coordinator);
  await waitForReady(http, coordinator);
  const { token } = await ask<{ token: string }>(["token", "create", "--node", nodeName]);
  writeFileSync(join(host.dir, "join-token"), token, { mode: 0o600 });
  const agent = daemon(host, "agent", configs.agent);
  const system = {
    host,
    grpc,
    http,
    agentHttp,
    destination,
    caFile: join(coordinatorData, "ca.crt"),
    tokenFile,
    coordinator,
    agent,
    forage,
    ask,
  };
  await waitForNode(system);
  return system;
}

export async function waitForNode({ ask, agent }: Pick<System, "ask" | "agent">): Promise<void> {
  await waitFor(async () => (await ask<{ ready?: boolean }[]>(["node", "ls"]))[0]?.ready === true, {
    what: "the node is ready",
    limitMs: readyLimitMs,
    explain: () => readFileSync(agent.logPath, "utf8").slice(-3000),
  });
}

export async function waitForReady(http: string, { logPath }: Pick<Daemon, "logPath">): Promise<void> {
  const ready = async () => (await fetch(`http://${http}/readyz`).catch(() => undefined))?.ok;
  await waitFor(ready, {
    what: `http://${http}/readyz says ready`,
    limitMs: readyLimitMs,
    explain: () => readFileSync(logPath, "utf8").slice(-3000),
  });
}

interface Places extends SystemOptions {
  readonly podCidr: string;
  readonly grpc: string;
  readonly http: string;
  readonly destination: string;
  readonly agentHttp: string;
  readonly tokenFile: string;
  readonly coordinatorData: string;
}

function writeConfigs(host: TestHost, places: Places): { coordinator: string; agent: string; cli: string } {
  const { grpc, http, destination, agentHttp, tokenFile, coordinatorData } = places;
  const write = (name: string, content: unknown): string => {
    const path = join(host.dir, `${name}.yaml`);
    writeFileSync(path, stringify(content));
    return path;
  };
  mkdirSync(host.dir, { recursive: true });
  return {
    coordinator: write("coordinator", {
      dataDir: coordinatorData,
      grpc: { listen: grpc },
      http: { listen: http },
      destination: { listen: destination },
      adminTokenFile: tokenFile,
      services: { virtualIps: virtualIpsBeside(places.podCidr) },
      ...places.coordinator,
    }),
    agent: write("agent", {
      dataDir: join(host.dir, "agent"),
      coordinator: grpc,
      joinTokenFile: join(host.dir, "join-token"),
      nodeName,
      instance: host.name,
      podCidr: places.podCidr,
      containerd: { address: host.containerd.address, namespace: host.namespace },
      nerdctl: host.nerdctlPath,
      cniBinDir: "/usr/lib/cni",
      http: { listen: agentHttp },
      hostPortRange: "21000-24999",
      advertiseAddress: "127.0.0.1",
      ...places.agent,
    }),
    cli: write("cli", { server: grpc, caFile: join(coordinatorData, "ca.crt"), tokenFile }),
  };
}

/** Starts one of the bundled programs; `network` names a network namespace to run it in. */
export function daemon(
  host: TestHost,
  name: "coordinator" | "agent",
  configPath: string,
  network?: string,
): Daemon {
  const options = name === "agent" ? AGENT_NODE_OPTIONS : [];
  const env = name === "agent" ? AGENT_ENVIRONMENT : {};
  const inside = network === undefined ? [] : ["nsenter", `--net=/run/netns/${network}`, "--"];
  const command = [...inside, process.execPath, ...options, join(root, "dist", `${name}.mjs`)];
  const [file = "", ...args] = [...command, "--config", configPath];
  let program: Program = host.spawn(name, file, args, { env });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    program.kill(signal);
    await program.exited;
  };
  return {
    get pid() {
      return program.identity.pid;
    },
    logPath: program.logPath,
    start: () => {
      program = host.spawn(name, file, args, { env });
    },
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
  };
}

/** Returns loopback addresses that are free now. */
export async function freeAddresses(count: number): Promise<string[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Server>((resolve, reject) => {
          const server = createServer().once("error", reject);
          server.listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  const addresses = servers.map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return addresses;
}
