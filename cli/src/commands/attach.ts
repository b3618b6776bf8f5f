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
Input is sent line by line; to a container with \`tty: true\`, key by key, and its terminal takes the size of this one. The end of the
input does not reach the program, because its standard input stays open for others: --end-input ends it. The keys of --detach-keys
end this command and not the program, and so does Ctrl-C, unless the program has a terminal and gets it. Where no input can be passed
on, a line on standard error says so, and only the output is followed.`,
  operands: [{ name: "POD", required: true, help: "a pod by name or the beginning of its uid" }],
  flags: {
    container: { type: "text", short: "c", hint: "NAME", help: "which container; the main one by default" },
    "no-stdin": { type: "switch", help: "only follow the output" },
    "end-input": {
      type: "switch",
      help: "at the end of the input, end the program's standard input for good, once no other session has it open",
    },
    "detach-keys": {
      type: "text",
      hint: "KEYS",
      help: `keys in the input that end this command; ${DEFAULT_KEYS} by default where the input is a terminal`,
    },
  },
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const { world, signal, settings } = context;
    for (const name of ["detach-keys", "end-input"] as const)
      if (flags["no-stdin"] && flags[name])
        throw new CliError("USAGE", `--${name} is for input: leave it out with --no-stdin`);
    const stdin = !flags["no-stdin"];
    const named = flags["detach-keys"] ?? (world.stdin.isTTY === true ? DEFAULT_KEYS : undefined);
    const detach = named === undefined ? undefined : new DetachKeys(parseDetachKeys(named));
    return await withCoordinator(context, async (coordinator) => {
      const pod: Pod = await findPod(coordinator, settings.namespace, podName(operands[0] ?? ""));
      const tty = hasTerminal(pod, flags.container) && (stdin ? world.stdin : world.stdout).isTTY === true;
      const call = await coordinator.duplex(operator.exec);
      try {
        const exitCode = await runExec(call, {
          start: { namespace: settings.namespace, pod: pod.name, container: flags.container ?? "" },
          ...{ command: [], attach: true, stdin, tty, endInput: flags["end-input"], detach },
          ...{ world, signal },
        });
        // A session that the detach keys ended has no exit code.
        return exitCode === undefined ? EXIT.ok : toExitCode(exitCode);
      } catch (error) {
        throw explain(error, coordinator.endpoint, signal);
      }
    });
  },
});

/** Reports whether the container, by default the main one, has a terminal. */
function hasTerminal({ template }: Pod, name: string | undefined): boolean {
  const containers = [
    template?.container,
    ...(template?.sidecars ?? []),
    ...(template?.initContainers ?? []),
  ];
  const container = name === undefined ? containers[0] : containers.find((it) => it?.name === name);
  return container?.tty === true;
}
