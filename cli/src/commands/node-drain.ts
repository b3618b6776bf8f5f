import { Node, WatchDrainResponse } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { pause } from "../pause.ts";
import { drainLines, drainSummary } from "../view/drain.ts";
import { confirmLoss } from "./confirm.ts";

/**
 * The delay between attempts while the coordinator is away, for example during a restart, after
 * which the drain continues.
 */
const RECONNECT_MS = 1_000;

export const nodeDrain = defineCommand({
  name: "drain",
  summary: "Keep new pods off a node, and move its pods to other nodes",
  details: `Pods stop as far as their workloads' annotation forage.dev/disruption-budget or max_unavailable allows; where that allows none,
a replacement starts on another node first. Pods that fit no other node stay, and the command lists them. Pods of jobs run to their end.
The drain continues without this command; \`forage node uncordon NODE\` cancels it. After --timeout the command stops waiting (exit code 4).`,
  operands: [{ name: "NODE", required: true, help: "name of the node" }],
  flags: {
    wait: { type: "switch", short: "w", help: "print what is left and why, until the drain is over" },
    force: { type: "switch", help: "stop all pods now, whatever their budgets, and those of jobs" },
    "include-claims": {
      type: "switch",
      help: "stop pods that can run nowhere else, too: those with claims and those that ask for the node by name",
    },
    yes: { type: "switch", short: "y", help: "with --force or --include-claims: don't ask on a terminal" },
    "uncordon-on-return": { type: "switch", help: "uncordon the node after its next reboot" },
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
    if (flags.force || flags["include-claims"]) {
      const question = `Stop pods of node/${name} of ${context.settings.place()} that ${flags.force ? "have budgets or belong to jobs" : "can run nowhere else"}?`;
      await confirmLoss(context, question, flags.yes);
    }
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

/** The exit codes of final states. A state that only a newer coordinator has is not a success. */
const CODES: Readonly<Record<string, ExitCode>> = { drained: EXIT.ok, failed: EXIT.timedOut };

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
      // The stream also ends when the coordinator stops, while the drain continues.
      if (last !== undefined && last.drain?.state !== "draining") break;
    } catch (error) {
      if (!(error instanceof CallError && error.passing)) throw error;
    }
    await pause(RECONNECT_MS * world.random(), signal);
  }
  const done = last;
  printOne(
    context,
    () => WatchDrainResponse.toJSON(done),
    () => `${drainSummary(name, done)}\n`,
  );
  return CODES[done.drain?.state ?? ""] ?? EXIT.failed;
}
