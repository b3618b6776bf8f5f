import { LogOptions } from "@forage/proto/forage/agent/v1/agent";
import type { LogsRequest, Pod } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { Lines, prefixLines } from "../session/lines.ts";
import { write } from "../session/write.ts";
import { findPod, findPodsOf, findResource } from "./find.ts";
import { parseReference } from "./reference.ts";

/** Each is a stream through coordinator and agent; nobody reads more at once. */
const maxFollowed = 50;

export const logs = defineCommand({
  name: "logs",
  summary: "Print what containers have written",
  details: `With KIND/NAME the logs of all its pods; with more than one, each line begins with the pod's name.
-f follows the pods that there are when it starts.`,
  operands: [
    {
      name: "POD|KIND/NAME",
      required: true,
      help: "a pod by name or the beginning of its uid, or a workload",
    },
  ],
  flags: {
    follow: { kind: "switch", short: "f", help: "go on with what is written from now on" },
    container: { kind: "text", short: "c", hint: "NAME", help: "which container; the main one by default" },
    tail: { kind: "text", hint: "LINES", help: "only so many lines from the end" },
    previous: { kind: "switch", short: "p", help: "of the terminated container before the present one" },
  },
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const options = LogOptions.fromPartial({
      follow: flags.follow,
      tailLines: parseTail(flags.tail),
      previous: flags.previous,
    });
    await withCoordinator(context, async (coordinator) => {
      const pods = await choosePods(context, coordinator, operands[0] ?? "");
      if (flags.follow && pods.length > maxFollowed) {
        throw new CliError(
          "USAGE",
          `${pods.length} pods are too many to follow at once (at most ${maxFollowed}): name one`,
        );
      }
      const requests = pods.map(
        ({ namespace, name }): LogsRequest => ({
          namespace,
          pod: name,
          container: flags.container ?? "",
          options,
        }),
      );
      if (requests.length === 1) await copy(context, coordinator, requests[0] as LogsRequest);
      else await mix(context, coordinator, requests, flags.follow);
    });
    return EXIT.ok;
  },
});

async function choosePods(
  context: Context,
  coordinator: Coordinator,
  target: string,
): Promise<readonly Pod[]> {
  const { namespace } = context.settings;
  const reference = parseReference(target);
  if (reference === undefined || reference.what === "pod") {
    return [await findPod(coordinator, namespace, reference?.name ?? target)];
  }
  if (reference.what === "node")
    throw new CliError("USAGE", "nodes have no logs here: name a pod or a workload");
  const pods = await findPodsOf(coordinator, namespace, reference);
  if (pods.length > 0) return pods;
  const { spec } = await findResource(coordinator, namespace, reference);
  const hint = spec?.spec?.$case === "service" ? `; say container_service/${spec.spec.value.target}` : "";
  throw new CliError("NOT_FOUND", `${target} has no pods${hint}`);
}

/** Byte by byte as it was written. */
async function copy(context: Context, coordinator: Coordinator, request: LogsRequest): Promise<void> {
  for await (const { data } of coordinator.stream(operator.logs, request)) {
    await write(context.world.stdout, data, context.signal);
  }
}

/** Pods one after the other, or when following side by side; lines stay whole either way. */
async function mix(
  context: Context,
  coordinator: Coordinator,
  requests: readonly LogsRequest[],
  atOnce: boolean,
): Promise<void> {
  const width = Math.max(...requests.map(({ pod }) => pod.length));
  const copyWithPrefix = async (request: LogsRequest): Promise<void> => {
    const prefix = `${context.paint("faint", `${request.pod.padEnd(width)} |`)} `;
    const lines = new Lines();
    for await (const { data } of coordinator.stream(operator.logs, request)) {
      await write(context.world.stdout, prefixLines(lines.push(data), prefix), context.signal);
    }
    await write(context.world.stdout, prefixLines(lines.end(), prefix), context.signal);
  };
  // One pod that has no logs (yet) must not hide those of the others.
  const errors: unknown[] = [];
  const tryOne = async (request: LogsRequest): Promise<void> => {
    try {
      await copyWithPrefix(request);
    } catch (error) {
      if (context.signal.aborted) throw error;
      errors.push(error);
      context.world.stderr.write(`${request.pod}: ${error instanceof Error ? error.message : error}\n`);
    }
  };
  if (atOnce) await Promise.all(requests.map(tryOne));
  else for (const request of requests) await tryOne(request);
  if (errors.length > 0)
    throw new CliError("REFUSED", `${errors.length} of ${requests.length} pods gave no logs`);
}

function parseTail(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const lines = Number(text);
  if (!/^\d+$/.test(text) || lines > 0xffff_ffff)
    throw new CliError("USAGE", `--tail: "${text}" is no number of lines`);
  return lines;
}
