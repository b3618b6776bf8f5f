import { GetWorkspacesRequest, WorkspaceManagerService, WorkspaceStatus } from "@forage/proto/core";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { workspaceColumns } from "../view/workspaces.ts";

export const ls = defineCommand({
  name: "ls",
  summary: "List workspaces",
  details: "A stopped workspace is listed for ten minutes, unless the coordinator's settings say otherwise.",
  flags: {
    owner: { type: "text", hint: "OWNER", help: "only workspaces of the owner" },
    workspace: { type: "text", hint: "META_ID", help: "only instances of the workspace" },
  },
  run: async (invocation) => {
    const { owner = "", workspace: metaId = "" } = invocation.flags;
    const context = contextOf(invocation);
    const request = GetWorkspacesRequest.fromPartial({ mustMatch: { owner, metaId } });
    await withCoordinator(context, async (coordinator) => {
      const { status } = await coordinator.call(WorkspaceManagerService.getWorkspaces, request);
      printListing(context, {
        columns: workspaceColumns(context.world.nowMs()),
        rows: status.map(withoutToken).sort((a, b) => (a.id < b.id ? -1 : 1)),
        json: WorkspaceStatus.toJSON,
        name: ({ id }) => id,
        none: "no workspaces",
      });
    });
    return EXIT.ok;
  },
});

/**
 * Removes the owner token, which gives access to the workspace, because listings are often saved to
 * files and tickets.
 */
function withoutToken(status: WorkspaceStatus): WorkspaceStatus {
  return { ...status, auth: status.auth && { ...status.auth, ownerToken: "" } };
}
