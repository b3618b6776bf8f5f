import { WorkspaceManagerService } from "@forage/proto/core";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { findWorkspace, WORKSPACE_OPERAND } from "./find-workspace.ts";

export const snapshot = defineCommand({
  name: "snapshot",
  summary: "Take a snapshot of a running workspace, and print its URL",
  details: `The command waits until the snapshot is complete; --timeout limits the wait to another time than 30 s, and the snapshot continues after it.
\`forage workspace start INSTANCE --snapshot URL\` begins with it.`,
  operands: [WORKSPACE_OPERAND],
  flags: { "no-wait": { type: "switch", help: "print the URL at once, before the snapshot is complete" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const returnImmediately = invocation.flags["no-wait"];
    await withCoordinator(context, async (coordinator) => {
      const { id } = await findWorkspace(coordinator, invocation.operands[0] ?? "");
      const { url } = await coordinator.call(WorkspaceManagerService.takeSnapshot, { id, returnImmediately });
      printOne(
        context,
        () => ({ id, url }),
        () => `${url}\n`,
      );
    });
    return EXIT.ok;
  },
});
