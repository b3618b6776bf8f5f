import {
  PlanResponse,
  type UpdateRolloutRequest,
  UpdateRolloutResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { type Command, defineCommand, type Invocation } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { describePlanned } from "../view/plan.ts";
import { followRollouts } from "./follow-rollouts.ts";
import { parseResource } from "./reference.ts";
import { revisionNumber } from "./rollout-history.ts";

const OPERANDS = [{ name: "KIND/NAME", required: true, help: "which container service" }] as const;
const DETACH = { type: "switch", help: "don't follow the rollout, print its id" } as const;
const ENDS_LIKE_APPLY = "It is followed until it has ended; exit codes are those of apply.";

export const rolloutUndo = defineCommand({
  name: "undo",
  summary: "Return to an earlier revision of a container service",
  details: `Without --to-revision to the newest one before the present one that succeeded and differs from it, contents of secrets and config maps included. How many pods there are stays as it is.
${ENDS_LIKE_APPLY}
With --dry-run it shows what it would change and do, step by step, as plan does for an apply.`,
  operands: OPERANDS,
  flags: {
    "to-revision": { type: "text", hint: "NUMBER", help: "see: forage rollout history KIND/NAME" },
    detach: DETACH,
    "dry-run": { type: "switch", help: "only show what it would do" },
  },
  run: async (invocation) => {
    const { "to-revision": given, detach: alone, "dry-run": isDry } = invocation.flags;
    const toRevision = given === undefined ? 0 : revisionNumber(given);
    const action = { $case: "undo", value: { toRevision } } as const;
    return isDry ? show(invocation, action) : update(invocation, action, !alone);
  },
});

export const rolloutRestart = defineCommand({
  name: "restart",
  summary: "Replace all pods of a container service by new ones of the same content",
  details: `As its update strategy says. ${ENDS_LIKE_APPLY}`,
  operands: OPERANDS,
  flags: { detach: DETACH },
  run: (invocation) => update(invocation, { $case: "restart", value: {} }, !invocation.flags.detach),
});

export const rolloutPause: Command = defineCommand({
  name: "pause",
  summary: "Pause a rollout",
  details: `The rollout creates no pods of the new revision and stops no older ones until it is resumed. Scaling and the replacement
of lost pods continue. Changes that are applied during a pause also wait.`,
  operands: OPERANDS,
  run: (invocation) => update(invocation, { $case: "pause", value: {} }, false),
});

export const rolloutResume: Command = defineCommand({
  name: "resume",
  summary: "Continue a paused rollout",
  operands: OPERANDS,
  run: (invocation) => update(invocation, { $case: "resume", value: {} }, false),
});

export const rolloutPromote: Command = defineCommand({
  name: "promote",
  summary: "Continue a rollout that waits after its first few pods",
  details: "The annotation forage.dev/canary makes a rollout wait.",
  operands: OPERANDS,
  run: (invocation) => update(invocation, { $case: "promote", value: {} }, false),
});

async function update(
  invocation: Invocation,
  action: NonNullable<UpdateRolloutRequest["action"]>,
  follow: boolean,
): Promise<ExitCode> {
  const context = contextOf(invocation);
  const [target = ""] = invocation.operands;
  const request = requestOf(context, target, action);
  return withCoordinator(context, async (coordinator) => {
    const answer = await coordinator.call(operator.updateRollout, request);
    if (follow) return followRollouts(context, coordinator, [answer.rolloutId], { single: true });
    print(context, target, answer);
    return EXIT.ok;
  });
}

/** Shows the effect of the change without making it. */
async function show(
  invocation: Invocation,
  action: NonNullable<UpdateRolloutRequest["action"]>,
): Promise<ExitCode> {
  const context = contextOf(invocation);
  const [target = ""] = invocation.operands;
  const rollout = requestOf(context, target, action);
  const request = { namespace: rollout.namespace, bundle: undefined, rollout };
  const plan = await withCoordinator(context, (coordinator) => coordinator.call(operator.plan, request));
  printOne(
    context,
    () => PlanResponse.toJSON(plan),
    () => plan.resources.map((resource) => describePlanned(resource, context.paint)).join(""),
  );
  return EXIT.ok;
}

function requestOf(
  context: Context,
  target: string,
  action: NonNullable<UpdateRolloutRequest["action"]>,
): UpdateRolloutRequest {
  return { namespace: context.settings.namespace, ...parseResource(target), action };
}

function print(context: Context, target: string, answer: UpdateRolloutResponse): void {
  const { rolloutId, message } = answer;
  const text = context.format === "name" ? rolloutId : `${target} ${message}: rollout ${rolloutId}`;
  printOne(
    context,
    () => UpdateRolloutResponse.toJSON(answer),
    () => `${text}\n`,
  );
}
