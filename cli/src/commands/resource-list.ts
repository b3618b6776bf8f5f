import { Resource } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { type Command, defineCommand } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import type { Column } from "../output/table.ts";
import { ALL_NAMESPACES_FLAG, chosenNamespace } from "./namespace-choice.ts";
import { parseSelector, SELECTOR_FLAG } from "./selector.ts";

export interface ResourceListOptions {
  readonly summary: string;
  readonly details: string;
  /** The plural of the resources in messages, such as `jobs`. */
  readonly many: string;
  readonly isListed: (resource: Resource) => boolean;
  readonly columns: (nowMs: number, withNamespace: boolean) => readonly Column<Resource>[];
}

/** Returns a command that lists resources of one kind in a namespace or in all namespaces. */
export function resourceListCommand(options: ResourceListOptions): Command {
  const { summary, details, many, isListed, columns } = options;
  return defineCommand({
    name: "ls",
    summary,
    details,
    flags: { "all-namespaces": ALL_NAMESPACES_FLAG, label: SELECTOR_FLAG },
    run: async (invocation) => {
      const context = contextOf(invocation);
      const namespace = chosenNamespace(invocation.flags, context.settings);
      const { equal, matches } = parseSelector("--label", invocation.flags.label);
      await withCoordinator(context, async (coordinator) => {
        const { resources } = await coordinator.call(operator.listResources, { namespace, labels: equal });
        printListing(context, {
          columns: columns(context.world.nowMs(), namespace === ""),
          rows: resources.filter((resource) => isListed(resource) && matches(resource.labels)),
          json: Resource.toJSON,
          name: ({ kind, name }) => `${kind}/${name}`,
          none: `no ${many} in ${namespace === "" ? "any namespace" : `namespace "${namespace}"`}`,
        });
      });
      return EXIT.ok;
    },
  });
}
