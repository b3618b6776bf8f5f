import { Node, WatchDrainResponse } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { pause } from "../pause.ts";
import { drainLines, drainSummary } from "../view/drain.ts";

/** Between tries while the coordinator is away, as when it is being restarted: the drain goes on with it. */
const reconnectMs = 1_000;

export const nodeDrain = defineCommand({
  name: "drain",
  summary: "Give a node no more pods, and have those that it has leave it",
  details: `Pods leave as their workloads can spare them: no more are missing than the annotation forage.dev/disruption-budget or
max_unavailable allows; where that is none, another is made elsewhere first. Pods that can run nowhere else stay and are told. Pods of jobs
may finish. The drain goes on without this command; \`forage node uncordon NODE\` calls it off. With --timeout it gives up then (exit code 4).`,
  operands: [{ name: "NODE", required: true, help: "name of the node" }],
  flags: {
    wait: { kind: "switch", short: "w", help: "tell what is left and why, until the drain is over" },
    force: { kind: "switch", help: "stop all pods now, whatever their budgets, and those of jobs" },
    "include-claims": {
      kind: "switch",
      help: "stop pods that can run nowhere else, too: those with claims and those that ask for the node by name",
    },
    "uncordon-on-return": { kind: "switch", help: "give the node pods again once it has booted anew" },
  },
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const [name = ""] = operands;
    const request = {
      name,
      force: flags.force,
      includeClaims: flags["include-claims"],
      uncordonOnReturn: flags["uncordon-on-return"],
      timeoutSeconds: Math.ceil((context.timeoutMs ?? 0) / 1000),
    };
    return withCoordinator(context, async (coordinator) => {
      const { node } = await coordinator.call(operator.drainNode, request);
      if (flags.wait) return watch(context, coordinator, name);
      printOne(
        context,
        () => node && Node.toJSON(node),
        () => `node/${name} is being drained; to see how far it is: forage node drain ${name} --wait\n`,
      );
      return EXIT.ok;
    });
  },
});

async function watch(context: Context, coordinator: Coordinator, name: string): Promise<ExitCode> {
  const { world, format, signal } = context;
  const quiet = format === "json" || format === "yaml";
  let last: WatchDrainResponse | undefined;
  for (;;) {
    try {
      for await (const now of coordinator.stream(operator.watchDrain, { name })) {
        if (!quiet) for (const line of drainLines(last, now)) world.stdout.write(`${line}\n`);
        last = now;
      }
      if (last !== undefined) break;
    } catch (error) {
      if (!(error instanceof CallError && error.passing)) throw error;
    }
    await pause(reconnectMs, signal);
  }
  const done = last;
  printOne(
    context,
    () => WatchDrainResponse.toJSON(done),
    () => `${drainSummary(name, done)}\n`,
  );
  return done.drain?.state === "failed" ? EXIT.timedOut : EXIT.ok;
}
