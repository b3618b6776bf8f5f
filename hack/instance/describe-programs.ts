import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { containerdPlaces } from "../lib/containerd.ts";
import { type Instance, instancePaths, instanceRunDir } from "./instance.ts";
import type { ProgramSpec } from "./program.ts";

// The agent runs on small hosts, and waits most of the time. A small young generation and one helper thread save 6 MB;
// running bytecode alone, without the compilers, their code and what they make, saves 20 MB at 40 pods.
export const AGENT_NODE_OPTIONS = [
  "--max-semi-space-size=1",
  "--v8-pool-size=1",
  "--optimize-for-size",
  "--no-opt",
  "--no-maglev",
  "--no-sparkplug",
];

/** What runs for an instance, in the order of its start. */
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
  ): ProgramSpec => {
    const script = join(root, "dist", `${name}.mjs`);
    return {
      name,
      file: process.execPath,
      args: [...options, script, "--config", configPath],
      logPath: join(paths.logs, `${name}.log`),
      digest: digestOf(readFileSync(script), config),
    };
  };
  return [
    ...(instance.containerd.own ? [ownContainerd(instance)] : []),
    daemon("coordinator", configs.coordinator, paths.coordinatorConfig, []),
    daemon("agent", configs.agent, paths.agentConfig, AGENT_NODE_OPTIONS),
  ];
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

function digestOf(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex").slice(0, 16);
}
