/** A workspace as the ingress and the SSH gateway see it. */
export interface ReachableWorkspace {
  readonly instanceId: string;
  readonly metaId: string;
  /**
   * 32 characters that are safe in cookies. Never empty: the directory leaves out workspaces
   * without a token.
   */
  readonly ownerToken: string;
  /** Whether everyone may reach every port without a token. */
  readonly admitsEveryone: boolean;
  /** The ports that everyone may reach without a token. */
  readonly publicPorts: ReadonlySet<number>;
  /** Public keys for SSH, each in the form of a line of `authorized_keys`. */
  readonly sshKeys: readonly string[];
  /** The workspace's pod; undefined until the pod is assigned to a node. */
  readonly pod: { readonly node: string; readonly uid: string } | undefined;
}

/** Looks up the workspaces that have not stopped. */
export interface WorkspaceDirectory {
  byInstanceId(instanceId: string): ReachableWorkspace | undefined;
  /** Returns the workspace whose URL has the prefix. */
  byPrefix(prefix: string): ReachableWorkspace | undefined;
  byMetaId(metaId: string): ReachableWorkspace | undefined;
}

/** Records that a workspace is in use. */
export interface ActivitySink {
  /**
   * Sets the last activity to now. Callers call this at most every {@link REPORT_INTERVAL_MS} for
   * each workspace.
   */
  markActive(instanceId: string): void;
}

/**
 * The least time between two reports of one workspace: shorter than the shortest useful time-out,
 * and long enough to make few writes to the store.
 */
export const REPORT_INTERVAL_MS = 30_000;
