import { operator } from "../client/coordinator.ts";
import { explain } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { CliError, type CliErrorCode } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { runExec } from "../session/exec.ts";
import { toExitCode } from "../session/to-exit-code.ts";
import { findPod } from "./find.ts";
import { podName } from "./pod-name.ts";

/**
 * Errors of this command itself, which keep their own exit codes. All others become a code that
 * differs from those of the executed command.
 */
const OWN_CODES: readonly CliErrorCode[] = ["INTERRUPTED", "TIMED_OUT", "OUTPUT_CLOSED", "USAGE", "CONFIG"];

export const exec = defineCommand({
  name: "exec",
  summary: "Run a command in a container",
  details: `The exit code is the command's own; 125 means that the command could not be run, or that its connection broke before it ended.`,
  operands: [
    { name: "POD", required: true, help: "a pod by name or the beginning of its uid" },
    { name: "CMD", required: true, repeated: true, afterDashes: true, help: "the command and its arguments" },
  ],
  flags: {
    stdin: { type: "switch", short: "i", help: "pass standard input on" },
    tty: { type: "switch", short: "t", help: "give it a terminal" },
    container: { type: "text", short: "c", hint: "NAME", help: "which container; the main one by default" },
  },
  run: async (invocation) => {
    const { flags, operands, afterDashes = [] } = invocation;
    const context = contextOf(invocation);
    const { world, signal, settings } = context;
    const isTerminal = flags.stdin ? world.stdin.isTTY === true : world.stdout.isTTY === true;
    if (flags.tty && !isTerminal)
      throw new CliError("USAGE", "-t needs a terminal: leave it out where input or output is piped");
    try {
      return await withCoordinator(context, async (coordinator) => {
        const { name } = await findPod(coordinator, settings.namespace, podName(operands[0] ?? ""));
        const call = await coordinator.duplex(operator.exec);
        try {
          const exitCode = await runExec(call, {
            start: { namespace: settings.namespace, pod: name, container: flags.container ?? "" },
            command: afterDashes,
            stdin: flags.stdin,
            tty: flags.tty,
            world,
            signal,
          });
          if (exitCode === undefined)
            throw new CliError("UNREACHABLE", "the session broke before the command's end was known");
          return toExitCode(exitCode);
        } catch (error) {
          throw explain(error, coordinator.endpoint, signal);
        }
      });
    } catch (error) {
      if (!(error instanceof CliError) || OWN_CODES.includes(error.code)) throw error;
      throw new CliError(error.code, error.message, { cause: error, exitCode: EXIT.execFailed });
    }
  },
});
