import { Resource } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { routeColumns } from "../view/routes.ts";
import { parseSelector, SELECTOR_FLAG } from "./selector.ts";

export const routeLs = defineCommand({
  name: "ls",
  summary: "List routes, those of services included, and whether gateways serve them",
  details:
    "`forage describe route/NAME` shows one with its conditions, hostnames, certificates and gateways.",
  flags: {
    "all-namespaces": { kind: "switch", short: "A", help: "of all namespaces" },
    label: SELECTOR_FLAG,
  },
  run: async (invocation) => {
    const { flags } = invocation;
    const context = contextOf(invocation);
    if (flags["all-namespaces"] && flags.namespace !== undefined)
      throw new CliError("USAGE", "--all-namespaces and --namespace contradict each other");
    const namespace = flags["all-namespaces"] ? "" : context.settings.namespace;
    const { equal, matches } = parseSelector("--label", flags.label);
    await withCoordinator(context, async (coordinator) => {
      const { resources } = await coordinator.call(operator.listResources, { namespace, labels: equal });
      printListing(context, {
        columns: routeColumns(context.world.nowMs(), namespace === ""),
        rows: resources.filter(({ route, labels }) => route !== undefined && matches(labels)),
        json: Resource.toJSON,
        name: ({ kind, name }) => `${kind}/${name}`,
        none: namespace === "" ? "no routes in any namespace" : `no routes in namespace "${namespace}"`,
      });
    });
    return EXIT.ok;
  },
});
