import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { bundlePrograms, PROGRAMS } from "../../hack/bundling/bundle-programs.ts";
import { AGENT_ENVIRONMENT, AGENT_NODE_OPTIONS } from "../../hack/instance/describe-programs.ts";

const ROOT = join(import.meta.dirname, "../..");
const PROGRAM = "nomad-driver";
const COOKIE = "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255";
/** Linux counts processor time in hundredths of a second. */
const TICK_MS = 10;

interface Launch {
  readonly startMs: number;
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly anonymousMb: number;
}

/** Start-up and memory of the Nomad plugin in its installed form: `nomad-plugin [--rounds N]`. */
export async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "11" } } });
  const outDir = join(ROOT, "dist");
  await bundlePrograms({ root: ROOT, outDir, programs: { [PROGRAM]: PROGRAMS[PROGRAM] ?? "" } });
  const launches: Launch[] = [];
  for (let round = 0; round < Number(values.rounds); round++)
    launches.push(await launch(join(outDir, `${PROGRAM}.mjs`)));
  const rows = (["startMs", "cpuMs", "rssMb", "anonymousMb"] as const).map((what) => {
    const sorted = launches.map((it) => it[what]).toSorted((a, b) => a - b);
    return { what, median: sorted[Math.floor(sorted.length / 2)] ?? 0, max: sorted.at(-1) ?? 0 };
  });
  console.log("The plugin from its start to its handshake, and its memory then");
  for (const { what, median, max } of rows)
    console.log(what.padEnd(14), median.toFixed(0).padStart(6), max.toFixed(0).padStart(6));
  console.log(JSON.stringify({ bench: "nomad-plugin", rows }));
}

async function launch(program: string): Promise<Launch> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, [...AGENT_NODE_OPTIONS, program], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...AGENT_ENVIRONMENT, NOMAD_PLUGIN_MAGIC_COOKIE: COOKIE },
  });
  const ended = once(child, "exit");
  try {
    const handshake = once(createInterface({ input: child.stdout }), "line");
    const first = await Promise.race([handshake, ended.then(() => undefined)]);
    if (first === undefined) throw new Error("the plugin ended without a handshake");
    const startMs = performance.now() - startedMs;
    return { startMs, ...usageOf(child.pid ?? 0) };
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}

function usageOf(pid: number): Omit<Launch, "startMs"> {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const megabytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
  // After the name in parentheses: the twelfth and thirteenth fields are user and system time.
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  const cpuMs = (Number(stat[11]) + Number(stat[12])) * TICK_MS;
  return { cpuMs, rssMb: megabytes("VmRSS"), anonymousMb: megabytes("RssAnon") };
}
