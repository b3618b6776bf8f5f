import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { containerdPlaces } from "../lib/containerd.ts";
import { etcdArguments } from "../lib/etcd-server.ts";
import { type Instance, type InstanceEtcd, instancePaths, instanceRunDir } from "./instance.ts";
import type { ProgramSpec } from "./program.ts";

// The agent runs on small hosts, and waits most of the time. A small young generation and one helper thread save 6 MB;
// running bytecode alone, without the compilers, their code and what they make, saves 20 MB at 40 pods; forgetting the
// bytecode of functions that weren't called between two collections, such as all that only runs at a start, 1.5 MB;
// recording types only in functions that run often 2 MB; and collecting when the heap has grown by a tenth 3 MB, for no
// more time at all. By default, Node parses its 121 public authorities when a program loads TLS, which takes 1.5 MB.
// Connections to the coordinator use none.
export const AGENT_NODE_OPTIONS = [
  "--max-semi-space-size=1",
  "--v8-pool-size=1",
  "--optimize-for-size",
  "--no-opt",
  "--no-maglev",
  "--no-sparkplug",
  "--bytecode-old-age=1",
  "--invocation-count-for-feedback-allocation=100",
  "--heap-growing-percent=10",
  "--use-openssl-ca",
];
// Parsing the bundle leaves holes between small pieces that the C library can't give back: 6 MB less with one arena,
// and with what is large, as far as it is, in mappings of its own.
export const AGENT_ENVIRONMENT: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_TOP_PAD_: "0",
  MALLOC_TRIM_THRESHOLD_: "65536",
  MALLOC_MMAP_THRESHOLD_: "32768",
};

// A large young generation saves no time here, and each connection of an agent that is made while it grows leaves it at its
// full size: 100 MB with 1,000 agents. V8 also reduces it after each full collection, down to 1 MB, which thousands of idle
// agents fill twice a second. A function is compiled by the second optimizing compiler after 30,000 calls in place of 3,000,
// which saves a seventh of the processor time of an apply of 10,000 pods in a new process. One arena of the C library keeps
// what connections free in one place.
export const COORDINATOR_NODE_OPTIONS = [
  "--min-semi-space-size=8",
  "--max-semi-space-size=8",
  "--invocation-count-for-turbofan=30000",
];
export const COORDINATOR_ENVIRONMENT: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: "1" };

/** The options of the log reader. It copies lines all the time, so compilers are worth their memory. */
export const LOGS_NODE_OPTIONS = ["--max-semi-space-size=1", "--v8-pool-size=1", "--optimize-for-size"];

/** Returns the programs of an instance, in the order of their start. */
export function describePrograms(
  root: string,
  instance: Instance,
  configs: { coordinator: string; agent: string },
): ProgramSpec[] {
  const paths = instancePaths(instance.dataDir);
  const daemon = (
    name: "coordinator" | "agent",
    config: string,
    configPath: string,
    options: readonly string[],
    env: Readonly<Record<string, string>>,
  ): ProgramSpec => {
    const script = join(root, "dist", `${name}.mjs`);
    return {
      name,
      file: process.execPath,
      args: [...options, script, "--config", configPath],
      env,
      logPath: join(paths.logs, `${name}.log`),
      digest: digestOf(readFileSync(script), config),
    };
  };
  return [
    ...(instance.containerd.own ? [ownContainerd(instance)] : []),
    ...(instance.etcd ? [ownEtcd(instance, instance.etcd)] : []),
    logReader(root, instance),
    daemon(
      "coordinator",
      configs.coordinator,
      paths.coordinatorConfig,
      COORDINATOR_NODE_OPTIONS,
      COORDINATOR_ENVIRONMENT,
    ),
    daemon("agent", configs.agent, paths.agentConfig, AGENT_NODE_OPTIONS, AGENT_ENVIRONMENT),
  ];
}

function logReader(root: string, instance: Instance): ProgramSpec {
  const paths = instancePaths(instance.dataDir);
  const script = join(root, "dist", "logs.mjs");
  return {
    name: "logs",
    file: process.execPath,
    args: [...LOGS_NODE_OPTIONS, script, "--dir", join(paths.agentData, "log-streams")],
    env: { MALLOC_ARENA_MAX: "1" },
    logPath: join(paths.logs, "logs.log"),
    digest: digestOf(readFileSync(script)),
  };
}

function ownContainerd(instance: Instance): ProgramSpec {
  const paths = instancePaths(instance.dataDir);
  const { configPath } = containerdPlaces(paths.containerd, instanceRunDir(instance.id));
  return {
    name: "containerd",
    file: "containerd",
    args: ["--config", configPath],
    logPath: join(paths.logs, "containerd.log"),
    digest: "1",
  };
}

function ownEtcd({ dataDir }: Instance, { program, client, peer }: InstanceEtcd): ProgramSpec {
  const paths = instancePaths(dataDir);
  return {
    name: "etcd",
    file: program,
    args: etcdArguments({
      name: "forage",
      dataDir: paths.etcd,
      client: `http://${client}`,
      peer: `http://${peer}`,
    }),
    logPath: join(paths.logs, "etcd.log"),
    digest: "1",
  };
}

function digestOf(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex").slice(0, 16);
}
