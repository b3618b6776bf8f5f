import { PushedMetric } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { formatAge } from "../duration.ts";
import { durationFlag } from "../duration-flag.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Column } from "../output/table.ts";
import { age, toMs } from "../view/timestamp.ts";

const NAME = { name: "NAME", required: true, help: "its name in custom_metrics" } as const;
const OF = {
  workload: { type: "text", hint: "NAME", help: "of this container service only" },
  pod: { type: "text", hint: "NAME", help: "of this pod only" },
} as const;

const set = defineCommand({
  name: "set",
  summary: "Push a value of a custom metric, which autoscaling uses until it expires",
  details: `Without --workload and --pod, the value applies to every container service of the namespace that uses the metric.
The coordinator keeps values in memory: after its restart they are missing until they are pushed again.`,
  operands: [NAME, { name: "VALUE", required: true, help: "a number of at least 0" }],
  flags: {
    ...OF,
    for: { type: "text", hint: "DURATION", help: "how long the value is used; 1m by default, at most 1h" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { workload = "", pod = "", for: life } = invocation.flags;
    const [metricName = "", text = ""] = invocation.operands;
    const ttlSeconds = life === undefined ? 0 : Math.ceil(durationFlag("--for", life) / 1000);
    const { namespace } = context.settings;
    const fields = { namespace, name: metricName, workload, pod, value: numberOf(text), ttlSeconds };
    const request = { namespace, metric: PushedMetric.fromPartial(fields) };
    const { metric } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.putMetric, request),
    );
    print(context, metric === undefined ? [] : [metric], true);
    return EXIT.ok;
  },
});

const list = defineCommand({
  name: "ls",
  summary: "List the pushed values that are still used",
  operands: [{ ...NAME, required: false }],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const request = { namespace: context.settings.namespace, name: invocation.operands[0] ?? "" };
    const { metrics } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listMetrics, request),
    );
    print(context, metrics, false);
    return EXIT.ok;
  },
});

const remove = defineCommand({
  name: "delete",
  summary: "Delete a pushed value before it expires",
  operands: [NAME],
  flags: OF,
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { workload = "", pod = "" } = invocation.flags;
    const [metricName = ""] = invocation.operands;
    const request = { namespace: context.settings.namespace, name: metricName, workload, pod };
    await withCoordinator(context, (coordinator) => coordinator.call(operator.deleteMetric, request));
    context.world.stdout.write(`metric/${metricName} deleted\n`);
    return EXIT.ok;
  },
});

export const metric = groupCommands("metric", "Push values that autoscaling uses", [set, list, remove]);

function numberOf(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new CliError("USAGE", `"${text}" is not a number`);
  return value;
}

function print(context: Context, rows: readonly PushedMetric[], single: boolean): void {
  printListing(context, {
    columns: columnsAt(context.world.nowMs()),
    rows,
    json: PushedMetric.toJSON,
    name: (row) => `metric/${row.name}`,
    none: "no pushed value is in use",
    single,
  });
}

function columnsAt(nowMs: number): readonly Column<PushedMetric>[] {
  return [
    { title: "NAME", value: (row) => row.name },
    { title: "OF", value: ({ workload, pod }) => (pod !== "" ? `pod/${pod}` : workload) },
    { title: "VALUE", value: ({ value }) => String(value), alignRight: true },
    { title: "AGE", value: ({ pushedAt }) => age(pushedAt, nowMs), alignRight: true },
    {
      title: "EXPIRES IN",
      value: ({ expiresAt }) => (expiresAt === undefined ? "" : formatAge(toMs(expiresAt) - nowMs)),
      alignRight: true,
    },
  ];
}
