import { Resource } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { jobColumns } from "../view/jobs.ts";
import { parseSelector, SELECTOR_FLAG } from "./selector.ts";

export const jobLs = defineCommand({
  name: "ls",
  summary: "List jobs and how they went",
  details: "Runs of cron jobs are listed with their OWNER.",
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
        columns: jobColumns(context.world.nowMs(), namespace === ""),
        rows: resources.filter(({ kind, labels }) => kind === "job" && matches(labels)),
        json: Resource.toJSON,
        name: ({ name }) => `job/${name}`,
        none: namespace === "" ? "no jobs in any namespace" : `no jobs in namespace "${namespace}"`,
      });
    });
    return EXIT.ok;
  },
});
