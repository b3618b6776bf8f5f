import { readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../lib/run.ts";
import type { spawnProgram } from "../lib/spawn-program.ts";
import { waitFor } from "../lib/wait-for.ts";
import type { FleetNode } from "./fleet.ts";
import type { LoadResult } from "./peer.ts";

/** A network namespace from which a test sends requests to the fleet: a pod's, a node's or this machine's. */
export interface RequestSource {
  /** The options of nsenter; `undefined` for this machine itself, outside of the fleet. */
  readonly network: string | undefined;
}

/** Requests that continue until they are ended. */
export interface Load {
  end(): Promise<LoadResult>;
}

export const outside: RequestSource = { network: undefined };

const script = join(import.meta.dirname, "peer.ts");
const START_LIMIT_MS = 60_000;

export function onNode({ host }: FleetNode): RequestSource {
  return { network: `net-${host.name}` };
}

/** Returns the network of a pod. Pods on different nodes may have the same address, so the node is needed, too. */
export async function inPod({ host }: FleetNode, podIp: string): Promise<RequestSource> {
  for (const network of readdirSync("/run/netns").filter((name) => name.startsWith(`forage-${host.name}-`))) {
    const { stdout } = await run("ip", ["-n", network, "-4", "-o", "address"], { allowFailure: true });
    if (stdout.includes(` ${podIp}/`)) return { network };
  }
  throw new Error(`no pod of ${host.name} has ${podIp}`);
}

/** Returns the result of each request: an answer or an error's code. */
export function ask(
  place: RequestSource,
  protocol: "tcp" | "udp",
  address: string,
  port: number,
  { times = 1, ownPort = 0 }: { readonly times?: number; readonly ownPort?: number } = {},
): Promise<string[]> {
  return peer<string[]>(place, ["ask", protocol, address, String(port), String(times), String(ownPort)]);
}

/** Returns the records, or the error's code. */
export function resolve<T>(
  place: RequestSource,
  server: string,
  type: string,
  name: string,
): Promise<T | string> {
  return peer<T | string>(place, ["dns", server, type, name]);
}

/** Returns the number of endpoints in Destination's first message, or the status code. */
export function endpointsAt(
  place: RequestSource,
  address: string,
  port: number,
  path: string,
): Promise<number | string> {
  return peer<number | string>(place, ["endpoints", address, String(port), path]);
}

/** Starts requests. Resolves once the first are on their way. */
export async function startLoad(
  node: FleetNode,
  place: RequestSource,
  address: string,
  port: number,
  clients: number,
): Promise<Load> {
  const program = await start(node, place, ["load", address, String(port), String(clients)]);
  return {
    end: async () => {
      program.kill("SIGTERM");
      await program.exited;
      const [, result = "null"] = program.readLog().split("\n");
      return JSON.parse(result) as LoadResult;
    },
  };
}

/** Starts a server that answers over UDP with its name until it is ended. */
export async function startAnswering(
  node: FleetNode,
  place: RequestSource,
  name: string,
  port: number,
): Promise<{ end(): Promise<void> }> {
  const program = await start(node, place, ["answer", name, String(port)]);
  return { end: () => program.end(0) };
}

async function start(
  { host }: FleetNode,
  place: RequestSource,
  args: readonly string[],
): Promise<ReturnType<typeof spawnProgram>> {
  const [file = "", ...rest] = commandIn(place, args);
  const program = host.spawn(`peer-${process.hrtime.bigint()}`, file, rest);
  await waitFor(() => program.readLog().startsWith("started\n"), {
    what: `${args.join(" ")} starts`,
    limitMs: START_LIMIT_MS,
    explain: () => program.readLog(),
  });
  return program;
}

async function peer<T>(place: RequestSource, args: readonly string[]): Promise<T> {
  const [file = "", ...rest] = commandIn(place, args);
  return JSON.parse((await run(file, rest)).stdout) as T;
}

function commandIn({ network }: RequestSource, args: readonly string[]): string[] {
  const inside = network === undefined ? [] : ["nsenter", `--net=/run/netns/${network}`, "--"];
  return [...inside, process.execPath, script, ...args];
}
