/** A workspace as the ingress and the SSH gateway see it. */
export interface ReachableWorkspace {
  readonly instanceId: string;
  readonly metaId: string;
  /** 32 characters that are safe in cookies. Never empty: a workspace without a token is not in the directory. */
  readonly ownerToken: string;
  /** Whether everyone may reach every port without a token. */
  readonly admitsEveryone: boolean;
  /** The ports that everyone may reach without a token. */
  readonly publicPorts: ReadonlySet<number>;
  /** Public keys for SSH, each in the form of a line of `authorized_keys`. */
  readonly sshKeys: readonly string[];
  /** Undefined before the pod has a node. */
  readonly pod: { readonly node: string; readonly uid: string } | undefined;
}

/** Looks up the workspaces that have not stopped. */
export interface WorkspaceDirectory {
  byInstanceId(instanceId: string): ReachableWorkspace | undefined;
  /** Returns the workspace whose URL has the prefix. */
  byPrefix(prefix: string): ReachableWorkspace | undefined;
  byMetaId(metaId: string): ReachableWorkspace | undefined;
}

/** Receives that somebody uses a workspace. */
export interface ActivitySink {
  /** Sets the last activity to now. It is called at most every {@link REPORT_INTERVAL_MS} for each workspace. */
  markActive(instanceId: string): void;
}

/** Shorter than the shortest useful time-out, and long enough that a write to the store each time costs little. */
export const REPORT_INTERVAL_MS = 30_000;
