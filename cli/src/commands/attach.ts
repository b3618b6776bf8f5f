import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { explain } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { DetachKeys, parseDetachKeys } from "../session/detach-keys.ts";
import { runExec } from "../session/exec.ts";
import { toExitCode } from "../session/to-exit-code.ts";
import { findPod } from "./find.ts";
import { podName } from "./pod-name.ts";

const DEFAULT_KEYS = "ctrl-]";

export const attach = defineCommand({
  name: "attach",
  summary: "Pass input to a container's own program, and follow its output",
  details: `For containers with \`stdin: true\`. Output is followed from now on, until the container ends: the exit code is then that
of the container. The logs command shows what was written before.
Input is sent line by line, and its end does not reach the program, because its standard input stays open for others. Ctrl-C and the keys of
--detach-keys end this command and not the program. Without \`stdin: true\`, or with \`tty: true\`, only the output is followed,
and a line on standard error says so.`,
  operands: [{ name: "POD", required: true, help: "a pod by name or the beginning of its uid" }],
  flags: {
    container: { kind: "text", short: "c", hint: "NAME", help: "which container; the main one by default" },
    "no-stdin": { kind: "switch", help: "only follow the output" },
    "detach-keys": {
      kind: "text",
      hint: "KEYS",
      help: `keys in the input that end this command; ${DEFAULT_KEYS} by default where the input is a terminal`,
    },
  },
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const { world, signal, settings } = context;
    if (flags["no-stdin"] && flags["detach-keys"] !== undefined)
      throw new CliError("USAGE", "--detach-keys is for input: leave it out with --no-stdin");
    const named = flags["detach-keys"] ?? (world.stdin.isTTY === true ? DEFAULT_KEYS : undefined);
    const detach = named === undefined ? undefined : new DetachKeys(parseDetachKeys(named));
    return await withCoordinator(context, async (coordinator) => {
      const pod: Pod = await findPod(coordinator, settings.namespace, podName(operands[0] ?? ""));
      const call = await coordinator.duplex(operator.exec);
      try {
        const exitCode = await runExec(call, {
          start: { namespace: settings.namespace, pod: pod.name, container: flags.container ?? "" },
          ...{ command: [], attach: true, stdin: !flags["no-stdin"], tty: false, detach },
          ...{ world, signal },
        });
        // The detach keys end the session without one.
        return exitCode === undefined ? EXIT.ok : toExitCode(exitCode);
      } catch (error) {
        throw explain(error, coordinator.endpoint, signal);
      }
    });
  },
});
