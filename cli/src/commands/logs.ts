import { messageOf } from "@forage/common/message-of";
import type { LogOptions } from "@forage/proto/forage/agent/v1/agent";
import type { LogsRequest, Pod } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { Lines, prefixLines } from "../session/lines.ts";
import { write } from "../session/write.ts";
import { findPod, findPodsOf, findResource } from "./find.ts";
import { followPod, followWorkload } from "./follow-logs.ts";
import { LOG_FLAGS, logOptions } from "./log-options.ts";
import { parseReference } from "./reference.ts";

export const logs = defineCommand({
  name: "logs",
  summary: "Print what containers have written",
  details: `With KIND/NAME the logs of all its pods; with more than one, each line begins with the pod's name.
-f follows until the container ends, over restarts of agent and coordinator; with KIND/NAME also with the pods that come later, until there are none to come.`,
  operands: [
    {
      name: "POD|KIND/NAME",
      required: true,
      help: "a pod by name or the beginning of its uid, or a workload",
    },
  ],
  flags: LOG_FLAGS,
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const options = logOptions(flags, context.world.nowMs());
    const [target = ""] = operands;
    const container = flags.container ?? "";
    await withCoordinator(context, async (coordinator) => {
      const { namespace } = context.settings;
      const reference = parseReference(target);
      if (reference?.what === "node")
        throw new CliError("USAGE", "nodes have no logs here: name a pod or a workload");
      if (reference === undefined || reference.what === "pod") {
        const pod = await findPod(coordinator, namespace, reference?.name ?? target);
        if (flags.follow) await followPod({ context, coordinator, container, options }, pod);
        else await copy(context, coordinator, requestFor(pod, container, options));
        return;
      }
      const pods = await findPodsOf(coordinator, namespace, reference);
      if (pods.length === 0) await explainNone(coordinator, namespace, reference, target);
      if (flags.follow) return followWorkload({ context, coordinator, container, options }, reference, pods);
      await copyAll(
        context,
        coordinator,
        pods.map((pod) => requestFor(pod, container, options)),
      );
    });
    return EXIT.ok;
  },
});

async function explainNone(
  coordinator: Coordinator,
  namespace: string,
  reference: { readonly kind: string; readonly name: string },
  target: string,
): Promise<never> {
  const { spec } = await findResource(coordinator, namespace, reference);
  const hint = spec?.spec?.$case === "service" ? `; try container_service/${spec.spec.value.target}` : "";
  throw new CliError("NOT_FOUND", `${target} has no pods${hint}`);
}

function requestFor({ namespace, name }: Pod, container: string, options: LogOptions): LogsRequest {
  return { namespace, pod: name, container, options };
}

/** Prints the log of one container byte by byte. */
async function copy(context: Context, coordinator: Coordinator, request: LogsRequest): Promise<void> {
  for await (const { data } of coordinator.stream(operator.logs, request)) {
    await write(context.world.stdout, data, context.signal);
  }
}

/**
 * Prints the logs of the pods one after the other. If there are several, each line begins with the
 * pod's name.
 */
async function copyAll(
  context: Context,
  coordinator: Coordinator,
  requests: readonly LogsRequest[],
): Promise<void> {
  const [only] = requests;
  if (requests.length === 1 && only !== undefined) return copy(context, coordinator, only);
  const width = Math.max(...requests.map(({ pod }) => pod.length));
  let failed = 0;
  for (const request of requests) {
    try {
      await copyWithPrefix(context, coordinator, request, width);
    } catch (error) {
      if (context.signal.aborted) throw error;
      // A pod without a log must not hide the logs of others.
      failed += 1;
      context.world.stderr.write(`${request.pod}: ${messageOf(error)}\n`);
    }
  }
  if (failed > 0) throw new CliError("REFUSED", `${failed} of ${requests.length} pods gave no logs`);
}

async function copyWithPrefix(
  { world, paint, signal }: Context,
  coordinator: Coordinator,
  request: LogsRequest,
  width: number,
): Promise<void> {
  const prefix = `${paint("faint", `${request.pod.padEnd(width)} |`)} `;
  const lines = new Lines();
  for await (const { data } of coordinator.stream(operator.logs, request)) {
    await write(world.stdout, prefixLines(lines.push(data), prefix), signal);
  }
  await write(world.stdout, prefixLines(lines.end(), prefix), signal);
}
