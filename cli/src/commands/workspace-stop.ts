import { StopWorkspacePolicy, WorkspaceManagerService } from "@forage/proto/core";
import { defineCommand } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { findWorkspace, WORKSPACE_OPERAND } from "./find-workspace.ts";

export const stop = defineCommand({
  name: "stop",
  summary: "Stop a workspace, with a backup of its content",
  details:
    "The command returns at once. The workspace is stopped when `forage workspace ls` shows it as Stopped.",
  operands: [WORKSPACE_OPERAND],
  flags: { immediately: { type: "switch", help: "give its processes a second to end, in place of thirty" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const policy = invocation.flags.immediately
      ? StopWorkspacePolicy.IMMEDIATELY
      : StopWorkspacePolicy.NORMALLY;
    await withCoordinator(context, async (coordinator) => {
      const { id } = await findWorkspace(coordinator, invocation.operands[0] ?? "");
      await coordinator.call(WorkspaceManagerService.stopWorkspace, { id, policy });
      context.world.stdout.write(`workspace ${id} is being stopped\n`);
    });
    return EXIT.ok;
  },
});
