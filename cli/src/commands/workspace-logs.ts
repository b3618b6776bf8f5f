import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { write } from "../session/write.ts";
import { findPod } from "./find.ts";
import { findWorkspace, WORKSPACE_OPERAND } from "./find-workspace.ts";
import { followPod } from "./follow-logs.ts";
import { LOG_FLAGS, logOptions } from "./log-options.ts";

/** The default namespace of workspaces in the coordinator's settings. */
const DEFAULT_NAMESPACE = "workspaces";

export const logs = defineCommand({
  name: "logs",
  summary: "Print what the container of a workspace has written",
  details: `Workspaces in another namespace than ${DEFAULT_NAMESPACE} need --namespace.`,
  operands: [WORKSPACE_OPERAND],
  flags: LOG_FLAGS,
  run: async (invocation) => {
    const { flags, operands } = invocation;
    const context = contextOf(invocation);
    const options = logOptions(flags, context.world.nowMs());
    const container = flags.container ?? "";
    const namespace = context.settings.flagNamespace ?? DEFAULT_NAMESPACE;
    await withCoordinator(context, async (coordinator) => {
      const status = await findWorkspace(coordinator, operands[0] ?? "");
      const pod = await findPod(coordinator, namespace, status.runtime?.podName ?? "");
      if (flags.follow) return followPod({ context, coordinator, container, options }, pod);
      const request = { namespace, pod: pod.name, container, options };
      for await (const { data } of coordinator.stream(operator.logs, request))
        await write(context.world.stdout, data, context.signal);
    });
    return EXIT.ok;
  },
});
