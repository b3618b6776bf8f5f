import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bundlePrograms, PROGRAMS } from "../../hack/bundling/bundle-programs.ts";
import { installFiles } from "../../hack/installing/install-files.ts";
import { startCoordinatorProcess } from "../fleet/coordinator-process.ts";

const ROOT = join(import.meta.dirname, "../..");
const USED_PROGRAMS = ["coordinator", "forage"];

/** Measures the CPU time of installed commands with a coordinator on this machine: `cli [--rounds N]`. */
export async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "21" } } });
  const dir = mkdtempSync(join(tmpdir(), "forage-bench-cli-"));
  const coordinator = await startCoordinatorProcess();
  try {
    await install(dir);
    writeFileSync(join(dir, "ca.crt"), coordinator.caPem);
    writeFileSync(join(dir, "token"), coordinator.token, { mode: 0o600 });
    const config = { server: coordinator.address, caFile: "ca.crt", tokenFile: "token" };
    writeFileSync(join(dir, "cli.yaml"), JSON.stringify(config));
    measure(dir, Number(values.rounds));
  } finally {
    await coordinator.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function install(root: string): Promise<void> {
  const programs = Object.fromEntries(USED_PROGRAMS.map((name) => [name, PROGRAMS[name] ?? ""]));
  await bundlePrograms({ root: ROOT, outDir: join(ROOT, "dist"), programs });
  installFiles({ checkout: ROOT, root, parts: ["coordinator"], node: process.execPath, nerdctl: undefined });
}

interface Cost {
  readonly command: string;
  readonly medianMs: number;
  readonly maxMs: number;
}

/** Measures each command, and node without a program as the floor. */
function measure(dir: string, rounds: number): void {
  const lib = join(dir, "usr/lib/forage");
  const forage = [join(lib, "node"), join(lib, "forage.mjs"), "--config", join(dir, "cli.yaml")];
  const lines: Readonly<Record<string, readonly string[]>> = {
    "node -e 0": [join(lib, "node"), "-e", "0"],
    "forage version": [...forage, "version"],
    "forage get pods": [...forage, "get", "pods"],
    "forage get pods -o yaml": [...forage, "get", "pods", "-o", "yaml"],
  };
  const costs = new Map<string, number[]>(Object.keys(lines).map((command) => [command, []]));
  // Commands alternate, so other work of the machine affects all of them equally.
  for (let round = 0; round < rounds; round++)
    for (const [command, argv] of Object.entries(lines)) costs.get(command)?.push(cpuMs(argv));
  const rows = [...costs].map(([command, each]) => summarize(command, each));
  console.log("CPU (user and system) of one command, ms");
  printRow("", "median", "max");
  for (const { command, medianMs, maxMs } of rows) printRow(command, medianMs.toFixed(0), maxMs.toFixed(0));
  console.log(JSON.stringify({ bench: "cli", rounds, rows }));
}

function cpuMs(argv: readonly string[]): number {
  const timed = `TIMEFORMAT="%U %S"; time "$@" > /dev/null 2>&1`;
  const { stderr, status } = spawnSync("bash", ["--norc", "-c", timed, "bash", ...argv], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH ?? "" },
  });
  const [user, system] = stderr.trim().split(" ").map(Number);
  if (status !== 0 || user === undefined || system === undefined)
    throw new Error(`${argv.join(" ")} ended with ${status}: ${stderr}`);
  return (user + system) * 1000;
}

function summarize(command: string, each: readonly number[]): Cost {
  const sorted = each.toSorted((a, b) => a - b);
  return { command, medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0, maxMs: sorted.at(-1) ?? 0 };
}

function printRow(command: string, median: string, max: string): void {
  console.log(command.padEnd(26) + median.padStart(8) + max.padStart(8));
}
