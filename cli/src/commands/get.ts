import { Endpoint, Pod, Resource } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { didYouMean } from "../command/suggest.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { endpointAddress, endpointColumns } from "../view/endpoints.ts";
import { cronJobColumns } from "../view/jobs.ts";
import { parseKind, RESOURCE_KINDS } from "../view/kinds.ts";
import { OBJECT_KINDS, OBJECT_WORDS, type ObjectKind, parseObjectKind } from "../view/object-kinds.ts";
import { podColumns } from "../view/pods.ts";
import { resourceColumns } from "../view/resources.ts";
import { listCoordinators } from "./coordinator-ls.ts";
import { notFound } from "./find.ts";
import { ALL_NAMESPACES_FLAG, assertOneChoice } from "./namespace-choice.ts";
import { printNodes } from "./node-ls.ts";
import { listObjects } from "./object-commands.ts";
import { parseSelector, SELECTOR_FLAG, type Selector } from "./selector.ts";
import { watchListing } from "./watch-listing.ts";

const LISTINGS = ["resources", "pods", "nodes", "endpoints", "coordinators"] as const;
type What = (typeof LISTINGS)[number] | (typeof RESOURCE_KINDS)[number] | ObjectKind;
const offers = [...LISTINGS, ...RESOURCE_KINDS, ...OBJECT_KINDS.map((kind) => OBJECT_WORDS[kind].many)];

interface Query {
  readonly name: string | undefined;
  /** The namespace; empty means all. */
  readonly namespace: string;
  readonly selector: Selector;
  readonly node: string;
}

export const get = defineCommand({
  name: "get",
  summary: "List what is deployed and where it runs",
  details: `WHAT NAME can be written as WHAT/NAME. WHAT is resources (the default), pods, nodes, endpoints, coordinators, a kind: ${RESOURCE_KINDS.join(", ")}; or what pods refer to: ${OBJECT_KINDS.map((kind) => OBJECT_WORDS[kind].many).join(", ")}.
NAME is a name; for pods also the beginning of a uid; for endpoints the service's name.
With --watch a terminal shows the newest list; otherwise each new or changed row is a line, with -o json one JSON object.`,
  operands: [
    { name: "WHAT", offers, help: "what to list; resources by default" },
    { name: "NAME", help: "only this one" },
  ],
  flags: {
    "all-namespaces": ALL_NAMESPACES_FLAG,
    label: SELECTOR_FLAG,
    node: { type: "text", hint: "NAME", help: "only pods on this node" },
    watch: { type: "switch", short: "w", help: "keep running and show changes" },
  },
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const [whatText, name] = splitWhat(operands);
    const what = parseWhat(whatText);
    assertOneChoice(flags);
    if (flags.label.length > 0 && (what === "endpoints" || what === "coordinators")) {
      throw new CliError("USAGE", `${what} can't be chosen by label`);
    }
    if (flags.node !== undefined && what !== "pods") throw new CliError("USAGE", "--node is for pods");
    const query: Query = {
      name,
      namespace: flags["all-namespaces"] ? "" : context.settings.namespace,
      selector: parseSelector("--label", flags.label),
      node: flags.node ?? "",
    };
    return withCoordinator(context, async (coordinator) => {
      const show = (shown: Context): Promise<void> => list(shown, coordinator, what, query);
      if (flags.watch) return watchListing(context, show);
      await show(context);
      return EXIT.ok;
    });
  },
});

/** Splits the operands `WHAT`, `WHAT NAME` or `WHAT/NAME`. */
function splitWhat([what, name]: readonly string[]): readonly [
  what: string | undefined,
  name: string | undefined,
] {
  if (what === undefined || !what.includes("/")) return [what, name];
  const [kind = "", ofKind = "", ...rest] = what.split("/");
  if (kind === "" || ofKind === "" || rest.length > 0)
    throw new CliError("USAGE", `"${what}" is not KIND/NAME`);
  if (name !== undefined) throw new CliError("USAGE", `"${what}" names one already: leave "${name}" out`);
  return [kind, ofKind];
}

function parseWhat(text = "resources"): What {
  const plain = text.toLowerCase();
  const listing = LISTINGS.find((each) => each === plain || each === `${plain}s`);
  const what = plain === "po" ? "pods" : (listing ?? parseKind(text) ?? parseObjectKind(text));
  if (what !== undefined) return what;
  throw new CliError("USAGE", `there is no "${text}" to list${didYouMean(text, offers)}`);
}

async function list(context: Context, coordinator: Coordinator, what: What, query: Query): Promise<void> {
  switch (what) {
    case "pods":
      return listPods(context, coordinator, query);
    case "nodes":
      return listNodes(context, coordinator, query);
    case "coordinators":
      return listCoordinators(context, coordinator, query.name);
    case "endpoints":
      return listEndpoints(context, coordinator, query);
    case "resources":
      return listResources(context, coordinator, query, undefined);
    case "secret":
    case "config_map":
    case "registry_credential":
    case "claim":
    case "priority_class":
      return listObjects(context, coordinator, what, query);
    default:
      return listResources(context, coordinator, query, what);
  }
}

async function listPods(context: Context, coordinator: Coordinator, query: Query): Promise<void> {
  const { namespace, selector, node, name } = query;
  const request = { namespace, labels: selector.equal, node, workload: "", name: "" };
  const answer = await coordinator.call(operator.listPods, { ...request, name: name ?? "" });
  // Failed pods that are kept are listed last.
  const pods = [...answer.pods, ...answer.kept].filter((pod) => selector.matches(pod.labels));
  if (name !== undefined && pods.length === 0) {
    const all = await coordinator.call(operator.listPods, request);
    throw notFound("pod", name, namespace, all.pods);
  }
  printListing(context, {
    columns: podColumns({ nowMs: context.world.nowMs(), withNamespace: namespace === "" }),
    rows: pods,
    json: Pod.toJSON,
    name: (pod) => `pod/${pod.name}`,
    none: nothing("pods", namespace),
    single: name !== undefined && pods.length === 1,
  });
}

async function listNodes(
  context: Context,
  coordinator: Coordinator,
  { name, selector }: Query,
): Promise<void> {
  const answer = await coordinator.call(operator.listNodes, {});
  const nodes = answer.nodes.filter(({ labels }) => selector.isMet(labels));
  const isWatched = context.onListing !== undefined;
  if (nodes.length === 0 && !selector.isEmpty && name === undefined && !isWatched) {
    context.world.stderr.write("no node has these labels\n");
    if (context.format === "table" || context.format === "wide") return;
  }
  const found = name === undefined ? nodes : nodes.filter((node) => node.name === name);
  if (name !== undefined && found.length === 0) throw notFound("node", name, undefined, nodes);
  printNodes(context, found, name !== undefined);
}

async function listEndpoints(
  context: Context,
  coordinator: Coordinator,
  { namespace, name }: Query,
): Promise<void> {
  const { endpoints } = await coordinator.call(operator.listEndpoints, { namespace, service: name ?? "" });
  printListing(context, {
    columns: endpointColumns(namespace === ""),
    rows: endpoints,
    json: Endpoint.toJSON,
    name: endpointAddress,
    none: name === undefined ? nothing("endpoints", namespace) : `service "${name}" has no ready endpoints`,
  });
}

async function listResources(
  context: Context,
  coordinator: Coordinator,
  { namespace, selector, name }: Query,
  kind: string | undefined,
): Promise<void> {
  const response = await coordinator.call(operator.listResources, { namespace, labels: selector.equal });
  const ofKind = response.resources.filter(
    (resource) => (kind === undefined || resource.kind === kind) && selector.matches(resource.labels),
  );
  const rows = name === undefined ? ofKind : ofKind.filter((resource) => resource.name === name);
  if (name !== undefined && rows.length === 0) {
    throw notFound(kind ?? "resource", name, namespace, ofKind);
  }
  const nowMs = context.world.nowMs();
  const withNamespace = namespace === "";
  printListing(context, {
    columns:
      kind === "cron_job" ? cronJobColumns(nowMs, withNamespace) : resourceColumns({ nowMs, withNamespace }),
    rows,
    json: Resource.toJSON,
    name: (resource) => `${resource.kind}/${resource.name}`,
    none: nothing(kind ?? "resources", namespace),
    single: name !== undefined && rows.length === 1,
  });
}

function nothing(what: string, namespace: string): string {
  return namespace === "" ? `no ${what} in any namespace` : `no ${what} in namespace "${namespace}"`;
}
