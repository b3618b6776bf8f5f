import { GetRolloutResponse } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import type { Style } from "../output/paint.ts";
import { type Column, renderTable } from "../output/table.ts";
import { isFinal, isOver, outcomeOf, type ResourceState, statusWord } from "../rollout/outcome.ts";
import { endedText, summarize } from "../rollout/summary.ts";
import { followRollouts } from "./follow-rollouts.ts";
import { parseResource } from "./reference.ts";

export const rolloutStatus = defineCommand({
  name: "status",
  summary: "Show the progress of a rollout",
  details: `Exit codes are those of apply once the rollout has ended; 0 while it is in progress.
KIND/NAME means the newest rollout of that resource.`,
  operands: [{ name: "ROLLOUT_ID|KIND/NAME", required: true, help: "which rollout" }],
  flags: { watch: { type: "switch", short: "w", help: "follow it until it has ended" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [target = ""] = invocation.operands;
    return withCoordinator(context, async (coordinator) => {
      const rollout = await getRollout(context, coordinator, target);
      if (invocation.flags.watch && !isOver(rollout)) {
        return followRollouts(context, coordinator, [rollout.rolloutId], { single: true });
      }
      printOne(
        context,
        () => GetRolloutResponse.toJSON(rollout),
        () => describe(context, rollout),
      );
      return isOver(rollout) ? outcomeOf(rollout.resources) : EXIT.ok;
    });
  },
});

export const rolloutColumns: readonly Column<ResourceState>[] = [
  { title: "KIND", value: ({ kind }) => kind },
  { title: "NAME", value: ({ name }) => name },
  { title: "ACTION", value: ({ action }) => action ?? "" },
  { title: "STATUS", value: ({ status }) => statusWord(status), style: styleOf },
  { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
  { title: "NOW", value: ({ now }) => now ?? "", whenFilled: true },
];

function getRollout(context: Context, coordinator: Coordinator, target: string): Promise<GetRolloutResponse> {
  if (!target.includes("/")) {
    return coordinator.call(operator.getRollout, { by: { $case: "rolloutId", value: target } });
  }
  const value = { namespace: context.settings.namespace, ...parseResource(target) };
  return coordinator.call(operator.getRollout, { by: { $case: "resource", value } });
}

function describe({ format, paint, world }: Context, rollout: GetRolloutResponse): string {
  if (format === "name") return `${rollout.rolloutId}\n`;
  const nowMs = world.nowMs();
  const table = renderTable(rolloutColumns, rollout.resources, { wide: format === "wide", paint });
  return `${table}${summarize(rollout)}${endedText(rollout, nowMs)}\n`;
}

function styleOf(state: ResourceState): Style {
  if (!isFinal(state.status)) return "busy";
  return outcomeOf([state]) === EXIT.ok ? "good" : "bad";
}
