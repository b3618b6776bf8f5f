import {
  StopWorkspacePolicy,
  type StopWorkspaceRequest,
  type StopWorkspaceResponse,
  WorkspaceConditionBool,
} from "@forage/proto/core";
import { CoordinatorError } from "../../errors.ts";
import { stopped, withConditions } from "../phase/conditions.ts";
import type { WorkspaceWriter } from "../writer.ts";

/** Orders the stop of an instance. Repeated calls have no effect. Throws NOT_FOUND, INVALID. */
export async function stopWorkspace(
  { id, policy }: StopWorkspaceRequest,
  { writer, nowMs }: { readonly writer: WorkspaceWriter; readonly nowMs: () => number },
): Promise<StopWorkspaceResponse> {
  const { NORMALLY, IMMEDIATELY } = StopWorkspacePolicy;
  if (policy !== NORMALLY && policy !== IMMEDIATELY)
    throw new CoordinatorError(
      "INVALID",
      "policy: must be NORMALLY or IMMEDIATELY; content is never thrown away",
      {
        violations: [{ field: "policy", description: "must be NORMALLY or IMMEDIATELY" }],
      },
    );
  await writer.update(id, (record) => {
    if (record.stop !== undefined) return record;
    const ordered = stopped(record, "request", nowMs());
    const stop = ordered.stop && { ...ordered.stop, policy };
    return { ...withConditions(ordered, { stoppedByRequest: WorkspaceConditionBool.TRUE }), stop };
  });
  return {};
}
