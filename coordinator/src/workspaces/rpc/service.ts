import type { DescribeClusterResponse, WorkspaceManagerService } from "@forage/proto/core";
import { CoordinatorError } from "../../errors.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import { assertNamespace, mayCall } from "../../rpc/access.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import type { ActivityWriter } from "../activity.ts";
import type { WorkspaceSettings } from "../settings.ts";
import { type StartOptions, startWorkspace } from "../start/start-workspace.ts";
import { noSuchWorkspace } from "../writer.ts";
import { controlAdmission, controlPort, setTimeout, updateSshKeys } from "./control.ts";
import { matchesFilter } from "./filter.ts";
import type { StatusReader } from "./status-reader.ts";
import { stopWorkspace } from "./stop.ts";
import type { Subscribers } from "./subscribers.ts";
import { backupWorkspace, type TransferCallOptions, takeSnapshot } from "./transfers.ts";

export interface ManagerOptions extends StartOptions, TransferCallOptions {
  readonly statuses: StatusReader;
  readonly subscribers: Subscribers;
  readonly activity: ActivityWriter;
}

/**
 * The method whose callers may see owner tokens: the permission to call it is the permission to use
 * workspaces.
 */
const TOKEN_METHOD = "/wsman.WorkspaceManager/MarkActive";

/**
 * Implements Gitpod's WorkspaceManager. Callers need a role in the namespace of workspaces; see
 * `rpc/access.ts`.
 */
export function managerService(options: ManagerOptions): Handlers<typeof WorkspaceManagerService> {
  const { view, writer, settings, statuses, subscribers, activity } = options;
  const allowed =
    <R, C extends Omit<CallContext, "signal">, T>(run: (request: R, context: C) => T) =>
    async (request: R, context: C): Promise<Awaited<T>> => {
      assertNamespace(context.caller, context.method, settings.namespace);
      return await run(request, context);
    };
  const maySeeTokens = ({ caller }: Pick<CallContext, "caller">): boolean =>
    mayCall(caller, TOKEN_METHOD, settings.namespace);
  return {
    getWorkspaces: allowed((request, context) => ({
      status: view
        .instances()
        .filter(({ record }) => matchesFilter(record, request.mustMatch))
        .map(({ record }) => statuses.statusOf(record, maySeeTokens(context))),
    })),
    startWorkspace: allowed((request) => startWorkspace(request, options)),
    stopWorkspace: allowed((request) => stopWorkspace(request, options)),
    describeWorkspace: allowed(({ id }, context) => {
      const entry = view.instance(id);
      if (entry === undefined) throw noSuchWorkspace(id);
      const lastMs = toEpochMs(view.activity(id)?.record.lastActivity);
      const lastActivity = lastMs === undefined ? "" : new Date(lastMs).toISOString();
      return { status: statuses.statusOf(entry.record, maySeeTokens(context)), lastActivity };
    }),
    subscribe: {
      push: (request, context, sink) => {
        assertNamespace(context.caller, context.method, settings.namespace);
        return subscribers.add(request, maySeeTokens(context), sink);
      },
    },
    markActive: allowed(async ({ id, closed }) => {
      await activity.mark(id, closed);
      return {};
    }),
    setTimeout: allowed((request) => setTimeout(request, writer)),
    controlPort: allowed((request) => controlPort(request, options)),
    controlAdmission: allowed((request) => controlAdmission(request, writer)),
    updateSshKey: allowed((request) => updateSshKeys(request, writer)),
    takeSnapshot: allowed((request, context) => takeSnapshot(request, context.signal, options)),
    backupWorkspace: allowed((request, context) => backupWorkspace(request, context.signal, options)),
    deleteVolumeSnapshot: allowed(({ id }) => {
      if (id === "") throw new CoordinatorError("INVALID", "id: must not be empty");
      // Content is saved in the content store, so there is never a volume snapshot to delete.
      return { wasDeleted: false };
    }),
    describeCluster: allowed(() => describeCluster(settings)),
  };
}

function describeCluster({ classes }: WorkspaceSettings): DescribeClusterResponse {
  const sorted = [...classes].sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    WorkspaceClasses: sorted.map(({ id, displayName }) => ({
      Id: id,
      DisplayName: displayName === "" ? id : displayName,
    })),
  };
}
