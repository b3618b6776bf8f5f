import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundlePrograms, PROGRAMS } from "../../hack/bundling/bundle-programs.ts";
import { run } from "../../hack/lib/run.ts";
import { nomadDriverLauncher } from "../../hack/packaging/nomad-driver-launcher.ts";
import { InstalledPlugin } from "./installed-plugin.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const PROGRAM = "nomad-driver";
const LAUNCHES = 9;
const COLD_LAUNCHES = 3;

/** Makes the files of an installed plugin in the directory, and returns the path of the launcher. */
export async function installPlugin(dir: string): Promise<string> {
  const outDir = join(ROOT, "dist");
  await bundlePrograms({ root: ROOT, outDir, programs: { [PROGRAM]: PROGRAMS[PROGRAM] ?? "" } });
  return writeLauncher(dir, process.execPath, join(outDir, `${PROGRAM}.mjs`));
}

function writeLauncher(dir: string, node: string, program: string): string {
  const launcher = join(dir, "forage-nomad-driver");
  writeFileSync(launcher, nomadDriverLauncher(node, program), { mode: 0o755 });
  return launcher;
}

export interface StartUp {
  readonly launchMs: number;
  readonly launchCpuMs: number;
  /** As `launchMs`, but with neither node nor the plugin in the page cache. */
  readonly coldLaunchMs: number;
  readonly memoryAtHandshakeMb: number;
}

/** Returns medians of consecutive launches up to the handshake. */
export async function measureStartUp(launcher: string, dir: string): Promise<StartUp> {
  const launches = [];
  for (let i = 0; i < LAUNCHES; i += 1) launches.push(await measureLaunch(launcher));
  const cold = [];
  for (let i = 0; i < COLD_LAUNCHES; i += 1) cold.push(await measureColdLaunch(dir));
  return {
    launchMs: median(launches.map((it) => it.startMs)),
    launchCpuMs: median(launches.map((it) => it.cpuMs)),
    coldLaunchMs: median(cold.map((it) => it.startMs)),
    memoryAtHandshakeMb: median(launches.map((it) => it.residentBytes)) / 1e6,
  };
}

async function measureLaunch(launcher: string) {
  const plugin = await InstalledPlugin.launch(launcher);
  try {
    return { startMs: plugin.startMs, cpuMs: plugin.cpuMs(), ...plugin.memory() };
  } finally {
    await plugin.close();
  }
}

/** Measures launches of new copies of node and the plugin. Pages that other processes use would stay in the cache. */
async function measureColdLaunch(dir: string) {
  const copies = mkdtempSync(join(dir, "cold-"));
  try {
    mkdirSync(copies, { recursive: true });
    const [node, program] = [join(copies, "node"), join(copies, `${PROGRAM}.mjs`)];
    copyFileSync(process.execPath, node);
    copyFileSync(join(ROOT, "dist", `${PROGRAM}.mjs`), program);
    for (const path of [node, program])
      await run("dd", [`of=${path}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
    return await measureLaunch(writeLauncher(copies, node, program));
  } finally {
    rmSync(copies, { recursive: true });
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
