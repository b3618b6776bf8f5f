import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findNomad, NomadUnderTest } from "../../hack/lib/nomad.ts";
import type { TestHost } from "../../hack/lib/test-host.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";

const TASKS = 5;
const START_LIMIT_MS = 120_000;

interface Allocation {
  readonly ClientStatus: string;
  readonly TaskStates: Readonly<Record<string, { readonly Events: readonly TaskEvent[] }>> | null;
}

interface TaskEvent {
  readonly Type: string;
  /** Nanoseconds of the wall clock. */
  readonly Time: number;
}

export interface Comparison {
  /** The median time from Nomad's event "Task Setup" to "Started". */
  readonly startMs: number;
  /** The median resident memory of each task's helper process: Nomad's executor, or containerd's shim. */
  readonly memoryForEachTaskMib: number;
}

/** Runs five equal tasks with each driver in a real Nomad. Returns `undefined` if Nomad was not compiled. */
export async function besideRawExec(
  host: TestHost,
  launcher: string,
): Promise<Readonly<Record<"forage" | "raw_exec", Comparison>> | undefined> {
  const program = findNomad();
  if (program === undefined) return undefined;
  const nomad = await NomadUnderTest.start({
    ...{ host, program },
    plugins: { "forage-nomad-driver": readFileSync(launcher, "utf8") },
    pluginConfig: `plugin "forage-nomad-driver" {
  config {
    containerd_address = "${host.containerd.address}"
    containerd_namespace = "${host.namespace}"
    nerdctl = "${host.nerdctlPath}"
    data_dir = "${host.dir}/nomad-driver"
    run_dir = "${host.dir}/nomad-driver-run"
  }
}
`,
  });
  try {
    const rawExec = await measure(
      nomad,
      host,
      "raw_exec",
      `command = "/bin/sleep"\nargs = ["1000"]`,
      / executor /,
    );
    const image = `image = "${host.image}"\ncommand = "sleep"\nargs = ["1000"]`;
    const forage = await measure(nomad, host, "forage", image, /^\S*containerd-shim-runc-v2 /);
    return { forage, raw_exec: rawExec };
  } finally {
    await nomad.close();
  }
}

async function measure(
  nomad: NomadUnderTest,
  host: TestHost,
  driver: string,
  config: string,
  helper: RegExp,
): Promise<Comparison> {
  const file = join(host.dir, `${driver}.nomad.hcl`);
  writeFileSync(file, jobText(driver, config));
  await nomad.run(["job", "run", "-detach", file]);
  const allocations = await waitFor(
    async () => {
      const found = (await nomad.get(`/v1/job/${driver}/allocations`)) as readonly Allocation[];
      return found.filter((it) => it.ClientStatus === "running").length === TASKS && found;
    },
    { what: `${TASKS} tasks of ${driver} run`, limitMs: START_LIMIT_MS, everyMs: 500 },
  );
  const starts = allocations.map(startMs).toSorted((a, b) => a - b);
  const memory = residentMib(
    (line) => helper.test(line) && (driver === "raw_exec" || line.includes(host.namespace)),
  );
  await nomad.run(["job", "stop", "-purge", "-detach", driver]);
  return { startMs: Math.round(starts[Math.floor(TASKS / 2)] ?? 0), memoryForEachTaskMib: memory };
}

function startMs({ TaskStates: states }: Allocation): number {
  const events = Object.values(states ?? {}).flatMap((it) => it.Events);
  const timeOf = (type: string): number => events.find((it) => it.Type === type)?.Time ?? 0;
  return (timeOf("Started") - timeOf("Task Setup")) / 1e6;
}

/** Returns the median resident memory of the processes with a matching command line. */
function residentMib(fits: (line: string) => boolean): number {
  const sizes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        if (!fits(line)) return [];
        return [Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024];
      } catch {
        // The process has ended.
        return [];
      }
    })
    .toSorted((a, b) => a - b);
  return Math.round(sizes[Math.floor(sizes.length / 2)] ?? 0);
}

function jobText(driver: string, config: string): string {
  return `job "${driver}" {
  group "sleep" {
    count = ${TASKS}
    task "sleep" {
      driver = "${driver}"
      config {
        ${config}
      }
      resources {
        cpu = 20
        memory = 16
      }
    }
  }
}
`;
}
