import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import {
  AGENT_ENVIRONMENT,
  AGENT_NODE_OPTIONS,
  COORDINATOR_ENVIRONMENT,
  COORDINATOR_NODE_OPTIONS,
} from "../instance/describe-programs.ts";
import { findPodCidr, virtualIpsBeside } from "../instance/pod-cidr.ts";
import { freePorts } from "../lib/free-ports.ts";
import { type RunResult, run } from "../lib/run.ts";
import type { Program } from "../lib/spawn-program.ts";
import type { TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { askForage, forageInProcess } from "./forage-in-process.ts";

/** The bundled coordinator and agent on a test host, and the `forage` command configured for them. */
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
  /** Runs the command. The caller must check its exit code. */
  forage(args: readonly string[], input?: string): Promise<RunResult>;
  /** Does the same as `forage`, but within this process. Standard output is text. */
  forageInProcess(args: readonly string[], input?: string): Promise<RunResult>;
  /** Runs the command in this process and parses its JSON output. Throws if it fails. */
  ask<T>(args: readonly string[]): Promise<T>;
}

/** A program that can be ended in every way and restarted with the same configuration. */
export interface Daemon {
  readonly pid: number;
  readonly logPath: string;
  start(): void;
  /** Sends SIGKILL, and waits until the process is gone. */
  kill(): Promise<void>;
  /** Sends SIGTERM, and waits until the process is gone. */
  stop(): Promise<void>;
}

export interface SystemOptions {
  /** Additional settings for the agent's or the coordinator's file. */
  readonly agent?: Readonly<Record<string, unknown>>;
  readonly coordinator?: Readonly<Record<string, unknown>>;
  /** Additional variables of the environment of the agent or the coordinator. */
  readonly environment?: Readonly<Partial<Record<"agent" | "coordinator", Environment>>>;
}

type Environment = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, "..", "..");
const NODE_NAME = "n1";
const READY_LIMIT_MS = 60_000;
/** A short back-off, because tests that crash containers wait for it again and again. */
const RESTART_BACK_OFF_SECONDS = 1;

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
  const env = { FORAGE_CONFIG: configs.cli };
  const ask: System["ask"] = (args) => askForage(args, env);
  const coordinator = daemon(host, "coordinator", configs.coordinator, {
    env: options.environment?.coordinator,
  });
  await waitForReady(http, coordinator);
  const { token } = await ask<{ token: string }>(["token", "create", "--node", NODE_NAME]);
  writeFileSync(join(host.dir, "join-token"), token, { mode: 0o600 });
  const agent = daemon(host, "agent", configs.agent, { env: options.environment?.agent });
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
    forageInProcess: (args: readonly string[], input?: string) => forageInProcess(args, env, input),
    ask,
  };
  await waitForNode(system);
  return system;
}

export async function waitForNode(
  { ask, agent }: Pick<System, "ask" | "agent">,
  nodeName = NODE_NAME,
): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    const nodes = await ask<{ name?: string; ready?: boolean }[]>(["node", "ls"]);
    return nodes.some(({ name, ready }) => name === nodeName && ready === true);
  };
  await waitFor(isReady, {
    what: `node ${nodeName} is ready`,
    limitMs: READY_LIMIT_MS,
    explain: () => readFileSync(agent.logPath, "utf8").slice(-3000),
  });
}

export async function waitForReady(http: string, { logPath }: Pick<Daemon, "logPath">): Promise<void> {
  const ready = async () => (await fetch(`http://${http}/readyz`).catch(() => undefined))?.ok;
  await waitFor(ready, {
    what: `http://${http}/readyz says ready`,
    limitMs: READY_LIMIT_MS,
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
  const { grpc, http, destination, tokenFile, coordinatorData } = places;
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
    agent: write("agent", agentSettings(host, { ...places, nodeName: NODE_NAME })),
    cli: write("cli", { server: grpc, caFile: join(coordinatorData, "ca.crt"), tokenFile }),
  };
}

type AgentPlaces = Pick<Places, "podCidr" | "grpc" | "agentHttp" | "agent"> & { readonly nodeName: string };

function agentSettings(host: TestHost, { podCidr, grpc, agentHttp, nodeName, agent }: AgentPlaces): object {
  return {
    dataDir: join(host.dir, "agent"),
    coordinator: grpc,
    joinTokenFile: join(host.dir, "join-token"),
    nodeName,
    instance: host.name,
    podCidr,
    containerd: { address: host.containerd.address, namespace: host.namespace },
    nerdctl: host.nerdctlPath,
    cniBinDir: "/usr/lib/cni",
    http: { listen: agentHttp },
    hostPortRange: "21000-24999",
    advertiseAddress: "127.0.0.1",
    restart: { backOffBaseSeconds: RESTART_BACK_OFF_SECONDS },
    ...agent,
  };
}

/** Starts an agent on another test host, and waits until its node is ready. The agent ends with that host. */
export async function joinHost(
  system: Pick<System, "grpc" | "ask">,
  host: TestHost,
  nodeName: string,
  agent: SystemOptions["agent"] = {},
): Promise<Daemon> {
  const [agentHttp = ""] = await freeAddresses(1);
  const podCidr = await findPodCidr(host.name);
  const { token } = await system.ask<{ token: string }>(["token", "create", "--node", nodeName]);
  writeFileSync(join(host.dir, "join-token"), token, { mode: 0o600 });
  const path = join(host.dir, "agent.yaml");
  const settings = agentSettings(host, { podCidr, grpc: system.grpc, agentHttp, nodeName, agent });
  writeFileSync(path, stringify(settings));
  const joined = daemon(host, "agent", path);
  await waitForNode({ ask: system.ask, agent: joined }, nodeName);
  return joined;
}

export interface DaemonOptions {
  /** The name of a network namespace for the program. */
  readonly network?: string | undefined;
  /** Additional variables of its environment. */
  readonly env?: Environment | undefined;
}

/** Starts one of the bundled programs. */
export function daemon(
  host: TestHost,
  name: "coordinator" | "agent",
  configPath: string,
  { network, env: added = {} }: DaemonOptions = {},
): Daemon {
  const options = name === "agent" ? AGENT_NODE_OPTIONS : COORDINATOR_NODE_OPTIONS;
  const env = { ...(name === "agent" ? AGENT_ENVIRONMENT : COORDINATOR_ENVIRONMENT), ...added };
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
  return (await freePorts(count)).map((port) => `127.0.0.1:${port}`);
}
