import { AdmissionLevel, PortVisibility, WorkspacePhase } from "@forage/proto/core";
import type { StatusReader } from "../rpc/status-reader.ts";
import type { InstanceEntry, WorkspaceView } from "../view.ts";
import type { ReachableWorkspace, WorkspaceDirectory } from "./workspace-directory.ts";

/** Looks up workspaces in the view of their records. */
export class ViewDirectory implements WorkspaceDirectory {
  readonly #view: Pick<WorkspaceView, "instance" | "instancesByPrefix" | "live">;
  readonly #statuses: Pick<StatusReader, "ownerTokenOf">;

  constructor(
    view: Pick<WorkspaceView, "instance" | "instancesByPrefix" | "live">,
    statuses: Pick<StatusReader, "ownerTokenOf">,
  ) {
    this.#view = view;
    this.#statuses = statuses;
  }

  byInstanceId(instanceId: string): ReachableWorkspace | undefined {
    return this.#reachable(this.#view.instance(instanceId));
  }

  byPrefix(prefix: string): ReachableWorkspace | undefined {
    for (const entry of this.#view.instancesByPrefix(prefix)) {
      const found = this.#reachable(entry);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  byMetaId(metaId: string): ReachableWorkspace | undefined {
    const live = this.#view.live(metaId);
    return live === undefined ? undefined : this.byInstanceId(live.record.instanceId);
  }

  #reachable(entry: InstanceEntry | undefined): ReachableWorkspace | undefined {
    if (entry === undefined || entry.record.phase === WorkspacePhase.STOPPED) return undefined;
    const { id, metadata, admission, spec, sshPublicKeys, node, podUid, podGone } = entry.record;
    const ownerToken = this.#statuses.ownerTokenOf(id);
    if (ownerToken === "") return undefined;
    const publicPorts = (spec?.exposedPorts ?? [])
      .filter(({ visibility }) => visibility === PortVisibility.PUBLIC)
      .map(({ port }) => port);
    return {
      instanceId: id,
      metaId: metadata?.metaId ?? "",
      ownerToken,
      admitsEveryone: admission === AdmissionLevel.ADMIT_EVERYONE,
      publicPorts: new Set(publicPorts),
      sshKeys: sshPublicKeys,
      pod: node === "" || podUid === "" || podGone ? undefined : { node, uid: podUid },
    };
  }
}
