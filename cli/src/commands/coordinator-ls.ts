import { Coordinator as CoordinatorView } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, remember, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { coordinatorColumns } from "../view/coordinators.ts";

export const coordinatorLs = defineCommand({
  name: "ls",
  summary: "List the coordinators of the cluster",
  details:
    "The one that leads comes first. The others report to it every 2 s; one that was removed is listed for an hour.",
  run: async (invocation) => {
    const context = contextOf(invocation);
    await withCoordinator(context, (coordinator) => listCoordinators(context, coordinator, undefined));
    return EXIT.ok;
  },
});

/** Lists all coordinators, or the one with the name. */
export async function listCoordinators(
  context: Context,
  coordinator: Coordinator,
  name: string | undefined,
): Promise<void> {
  const { coordinators } = await coordinator.call(operator.listCoordinators, {});
  // A single coordinator reports the address that is already known.
  if (coordinators.length > 1) remember(context, coordinators);
  printListing(context, {
    columns: coordinatorColumns(context.world.nowMs()),
    rows: coordinators.filter((it) => name === undefined || it.name === name),
    json: CoordinatorView.toJSON,
    name: (it) => `coordinator/${it.name}`,
    none:
      name === undefined ? "the coordinator does not list itself" : `no coordinator has the name "${name}"`,
  });
}
