import {
  GetWorkspacesRequest,
  WorkspaceManagerService,
  WorkspacePhase,
  type WorkspaceStatus,
} from "@forage/proto/core";
import type { Coordinator } from "../client/coordinator.ts";
import { CliError } from "../errors.ts";

/** The operand that names a workspace. */
export const WORKSPACE_OPERAND = {
  name: "WORKSPACE",
  required: true,
  help: "a workspace by its instance id or its meta id",
} as const;

/**
 * Returns the workspace with the instance id, or else the newest one with the meta id that has not
 * stopped. Throws NOT_FOUND.
 */
export async function findWorkspace(coordinator: Coordinator, id: string): Promise<WorkspaceStatus> {
  const { getWorkspaces } = WorkspaceManagerService;
  const { status } = await coordinator.call(getWorkspaces, GetWorkspacesRequest.fromPartial({}));
  const exact = status.find((workspace) => workspace.id === id);
  const live = status.find(
    ({ metadata, phase }) => metadata?.metaId === id && phase !== WorkspacePhase.STOPPED,
  );
  const found = exact ?? live;
  if (found !== undefined) return found;
  throw new CliError("NOT_FOUND", `there is no workspace ${JSON.stringify(id)} that has not stopped`);
}
