import type { Log } from "@forage/common/log";
import type { WorkspaceStatus } from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { Vault } from "../../objects/vault.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { statusOf } from "../phase/status.ts";
import { openSecrets } from "../records.ts";
import type { WorkspaceView } from "../view.ts";

export interface StatusReaderOptions {
  readonly view: WorkspaceView;
  readonly state: ClusterView;
  readonly vault: Vault;
  readonly log: Log;
}

/**
 * The most decrypted owner tokens kept in memory. Without the cache, each status for each of a
 * thousand subscribers would need a decryption.
 */
const MAX_CACHED_TOKENS = 20_000;

/** Builds the statuses for clients. */
export class StatusReader {
  readonly #options: StatusReaderOptions;
  readonly #tokens = new Map<string, string>();

  constructor(options: StatusReaderOptions) {
    this.#options = options;
  }

  /**
   * Returns the status of an instance. `withToken` states whether the caller may use the workspace
   * and see its token.
   */
  statusOf(record: InstanceRecord, withToken: boolean): WorkspaceStatus {
    const address = this.#options.state.node(record.node)?.report?.report?.address ?? "";
    return statusOf(record, withToken ? this.ownerTokenOf(record.id) : "", address);
  }

  /** Returns the owner token of an instance, or an empty text if it can't be decrypted. */
  ownerTokenOf(id: string): string {
    const known = this.#tokens.get(id);
    if (known !== undefined) return known;
    const token = this.#open(id);
    if (this.#tokens.size >= MAX_CACHED_TOKENS) this.#tokens.clear();
    if (token !== "") this.#tokens.set(id, token);
    return token;
  }

  #open(id: string): string {
    const { view, vault, log } = this.#options;
    const sealed = view.secrets(id);
    if (sealed === undefined) return "";
    try {
      return openSecrets(id, sealed, vault).ownerToken;
    } catch (err) {
      log.error({ event: "workspace-secrets-unreadable", workspace: id, err });
      return "";
    }
  }
}
