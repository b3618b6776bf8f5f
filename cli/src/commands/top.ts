import { Usage } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { byUsage, nodeUsageColumns, podUsageColumns, USAGE_ORDERS, type UsageOrder } from "../view/usage.ts";
import { notFound } from "./find.ts";
import { assertOneChoice } from "./namespace-choice.ts";
import { parseSelector, SELECTOR_FLAG, type Selector } from "./selector.ts";
import { watchListing } from "./watch-listing.ts";

interface Query {
  readonly name: string | undefined;
  /** The namespace; empty means all. */
  readonly namespace: string;
  readonly selector: Selector;
  readonly node: string;
  readonly order: UsageOrder;
}

export const top = defineCommand({
  name: "top",
  summary: "Show how much CPU and memory nodes and pods use",
  details: `CPU is a mean of the last seconds, in cores: 250m is a quarter of one. Memory of a pod is its working set. Nodes are shown
with everything that runs on the host; the percentages are of what pods may take there.
A pod that has just started, and what is on a node that is not connected, has no values yet.`,
  operands: [
    {
      name: "WHAT",
      required: true,
      choices: ["nodes", "pods", "node", "pod"],
      help: "nodes or pods",
    },
    { name: "NAME", help: "only this one" },
  ],
  flags: {
    "all-namespaces": { type: "switch", short: "A", help: "pods of all namespaces" },
    label: SELECTOR_FLAG,
    node: { type: "text", hint: "NAME", help: "only pods on this node" },
    sort: {
      type: "text",
      hint: "ORDER",
      choices: USAGE_ORDERS,
      help: "largest first, or by name; by CPU by default",
    },
    watch: { type: "switch", short: "w", help: "keep running and show changes" },
  },
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const [what = "", name] = operands;
    const isOfNodes = what.startsWith("node");
    assertOneChoice(flags);
    if (isOfNodes && (flags["all-namespaces"] || flags.node !== undefined))
      throw new CliError("USAGE", "--all-namespaces and --node are for pods");
    const query: Query = {
      name,
      namespace: flags["all-namespaces"] ? "" : context.settings.namespace,
      selector: parseSelector("--label", flags.label),
      node: flags.node ?? "",
      // The parser has validated the choice.
      order: (flags.sort as UsageOrder | undefined) ?? "cpu",
    };
    return withCoordinator(context, async (coordinator) => {
      const show = (shown: Context): Promise<void> =>
        isOfNodes ? showNodes(shown, coordinator, query) : showPods(shown, coordinator, query);
      if (flags.watch) return watchListing(context, show);
      await show(context);
      return EXIT.ok;
    });
  },
});

async function showNodes(
  context: Context,
  coordinator: Coordinator,
  { name, selector, order }: Query,
): Promise<void> {
  const { nodes } = await coordinator.call(operator.listNodes, {});
  const found = nodes.filter(
    (node) => selector.isMet(node.labels) && (name === undefined || node.name === name),
  );
  if (name !== undefined && found.length === 0) throw notFound("node", name, undefined, nodes);
  printListing(context, {
    columns: nodeUsageColumns(),
    rows: found.sort(byUsage(order)),
    json: (node) => ({ name: node.name, ...usageOf(node) }),
    name: (node) => `node/${node.name}`,
    none: nodes.length === 0 ? "no node has joined yet" : "no node has these labels",
    single: name !== undefined,
  });
}

async function showPods(
  context: Context,
  coordinator: Coordinator,
  { name, namespace, selector, node, order }: Query,
): Promise<void> {
  const request = { namespace, labels: selector.equal, node, workload: "", name: "" };
  const { pods } = await coordinator.call(operator.listPods, request);
  const found = pods.filter(
    (pod) => selector.matches(pod.labels) && (name === undefined || pod.name === name),
  );
  if (name !== undefined && found.length === 0) throw notFound("pod", name, namespace, pods);
  printListing(context, {
    columns: podUsageColumns(namespace === ""),
    rows: found.sort(byUsage(order)),
    json: (pod) => ({ namespace: pod.namespace, name: pod.name, node: pod.node, ...usageOf(pod) }),
    name: (pod) => `pod/${pod.name}`,
    none: namespace === "" ? "no pods in any namespace" : `no pods in namespace "${namespace}"`,
    single: name !== undefined && found.length === 1,
  });
}

function usageOf({ usage }: { readonly usage?: Usage | undefined }): object {
  return usage === undefined ? {} : { usage: Usage.toJSON(usage) };
}
