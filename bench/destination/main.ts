import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ensureGoProgram } from "../../hack/lib/go-program.ts";
import { type Figures, measure, medians, type Program } from "./measure.ts";

/** Additional options of Node.js, such as `--cpu-prof`. */
const nodeOptions = (process.env.BENCH_NODE_OPTIONS ?? "").split(" ").filter((option) => option !== "");

interface Result {
  readonly server: string;
  readonly connections: number;
  readonly figures: Figures;
}

/**
 * Measures one service on many streams: `destination [--streams N] [--connections N,N] [--endpoints N] [--warm-up N]
 * [--changes N] [--runs N] [--beside floor] [--whole]`. With `--whole` the coordinator is complete: its store is on
 * disk, and agents connect over TLS. With `--beside floor`, runs alternate with runs of a server that consists of
 * Linkerd's parts and only sends.
 */
export async function main(): Promise<void> {
  const text = (value: string) => ({ type: "string", default: value }) as const;
  const { values } = parseArgs({
    options: {
      streams: text("1000"),
      connections: text("1000,10"),
      endpoints: text("100"),
      "warm-up": text("40"),
      changes: text("40"),
      runs: text("1"),
      beside: text(""),
      whole: { type: "boolean", default: false },
    },
  });
  const servers = new Map([values.whole ? ["coordinator", whole()] : ["forage", ours("server.ts")]]);
  if (values.beside === "floor") servers.set("floor", await floor());
  else if (values.beside !== "") throw new Error(`--beside takes floor, not ${values.beside}`);
  const load = loadavg()[0];
  const results: Result[] = [];
  for (const connections of values.connections.split(",").map(Number)) {
    const sizes = {
      streams: Number(values.streams),
      connections,
      endpoints: Number(values.endpoints),
      warmUp: Number(values["warm-up"]),
      changes: Number(values.changes),
    };
    results.push(...(await alternate(servers, sizes, Number(values.runs))));
  }
  const [first] = results;
  const row = (title: string, cells: readonly (string | number)[]): void =>
    console.log(title.padEnd(20), ...cells.map((cell) => String(cell).padStart(12)));
  row(
    "server",
    results.map(({ server }) => server),
  );
  row(
    "connections",
    results.map(({ connections }) => connections),
  );
  for (const key of Object.keys(first?.figures ?? {}) as (keyof Figures)[])
    row(
      key,
      results.map(({ figures }) => figures[key]),
    );
  console.log(JSON.stringify({ bench: "destination", ...values, load: [load, loadavg()[0]], results }));
}

/** Runs the measurement for each server in turn, so other work of the machine affects all equally. */
async function alternate(
  servers: ReadonlyMap<string, Program>,
  sizes: Parameters<typeof measure>[2],
  runs: number,
): Promise<Result[]> {
  const found = new Map<string, Figures[]>();
  for (let run = 0; run < runs; run++) {
    for (const [server, program] of servers) {
      const figures = await measure(program, ours("client.ts"), sizes);
      found.set(server, [...(found.get(server) ?? []), figures]);
    }
  }
  return [...found].flatMap(([server, all]) => {
    const figures = medians(all);
    return figures === undefined ? [] : [{ server, connections: sizes.connections, figures }];
  });
}

/** Returns the program with the whole coordinator. The options are passed on to the coordinator. */
function whole(): Program {
  return { program: process.execPath, args: [join(import.meta.dirname, "whole.ts")] };
}

function ours(file: string): Program {
  return { program: process.execPath, args: [...nodeOptions, join(import.meta.dirname, file)] };
}

async function floor(): Promise<Program> {
  const folder = join(import.meta.dirname, "../../hack/linkerd");
  return { program: await ensureGoProgram(folder, "floor", { report: console.error }), args: [] };
}
