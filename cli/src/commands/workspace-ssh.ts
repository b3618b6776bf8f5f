import { operator } from "../client/coordinator.ts";
import { explain } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { runExec } from "../session/exec.ts";
import { findWorkspace, WORKSPACE_OPERAND } from "./find-workspace.ts";

/** The default namespace of workspaces in the coordinator's settings. */
const DEFAULT_NAMESPACE = "workspaces";
/** Arguments of the user are passed as parameters, and never become part of the script. */
const SCRIPT = `cd /workspace 2> /dev/null
for shell in "$SHELL" /bin/bash /bin/sh; do [ -x "$shell" ] && break; done
[ $# -eq 0 ] && exec "$shell" -l
exec "$@"`;

export const ssh = defineCommand({
  name: "ssh",
  summary: "Open a shell in a workspace, or run a command in it",
  details: `It runs through the coordinator, needs no SSH gateway and a token with the role editor. The exit code is the command's own; 125 means that it could not be run. Workspaces in another namespace than ${DEFAULT_NAMESPACE} need --namespace.`,
  operands: [
    WORKSPACE_OPERAND,
    {
      name: "CMD",
      required: false,
      repeated: true,
      afterDashes: true,
      help: "a command and its arguments; a login shell by default",
    },
  ],
  flags: {},
  run: async (invocation) => {
    const { operands, afterDashes = [] } = invocation;
    const context = contextOf(invocation);
    const { world, signal, settings } = context;
    const tty = world.stdin.isTTY === true && world.stdout.isTTY === true;
    return withCoordinator(context, async (coordinator) => {
      const status = await findWorkspace(coordinator, operands[0] ?? "");
      const pod = status.runtime?.podName ?? "";
      if (pod === "") throw new CliError("REFUSED", `workspace ${status.id} has no pod: it does not run`);
      const call = await coordinator.duplex(operator.exec);
      try {
        const exitCode = await runExec(call, {
          start: { namespace: settings.flagNamespace ?? DEFAULT_NAMESPACE, pod, container: "" },
          command: ["/bin/sh", "-c", SCRIPT, "sh", ...afterDashes],
          stdin: true,
          ...{ tty, world, signal },
        });
        return exitCode === undefined ? EXIT.execFailed : Math.min(Math.max(exitCode, 0), 255);
      } catch (error) {
        throw explain(error, coordinator.endpoint, signal);
      }
    });
  },
});
