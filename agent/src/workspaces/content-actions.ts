import type { GitStatus } from "@forage/proto/content-service-api/initializer";
import type {
  Archive,
  ContentSource,
  TransferOrder,
  WorkspaceOrder,
} from "@forage/proto/forage/workspaces/v1/workspaces";

/** Receives a sentence about the progress of an initialization. Never a credential. */
export type NoteProgress = (message: string) => void;

export interface Initialized {
  readonly source: ContentSource;
  /** Describes deviations from the order, such as a submodule that could not be fetched. */
  readonly message: string;
}

/**
 * The operations on the content of a host's workspaces. Every call may be repeated after a crash. All reject with a
 * WorkspaceError.
 */
export interface ContentActions {
  /** Completes the content. If it is complete already, returns at once with an unspecified source. */
  initialize(order: WorkspaceOrder, note: NoteProgress, signal: AbortSignal): Promise<Initialized>;
  /** Makes complete content usable again after a restart of the host. */
  open(order: WorkspaceOrder, signal: AbortSignal): Promise<void>;
  /** Creates an archive and uploads it to the content store. `progress` receives the bytes sent. */
  transfer(
    order: WorkspaceOrder,
    transfer: TransferOrder,
    progress: (bytesDone: number) => void,
    signal: AbortSignal,
  ): Promise<Archive>;
  /** Returns undefined if the content is not a working copy. */
  readGitStatus(order: WorkspaceOrder, signal: AbortSignal): Promise<GitStatus | undefined>;
  /** Deletes archives on this host that belong to none of the transfers. */
  keepArchives(id: string, transferIds: readonly string[]): Promise<void>;
  /** Takes the workspace's files out of use in one step. `removeRemains` frees the disk space. */
  dispose(id: string, signal: AbortSignal): Promise<void>;
  /** Returns the instance ids of workspaces that were disposed of and still have files on the disk. */
  remains(): Promise<readonly string[]>;
  /** Deletes the files of a workspace that was disposed of. May take minutes. */
  removeRemains(id: string, signal: AbortSignal): Promise<void>;
  /** Returns the canonical path of complete content. */
  contentPath(id: string): string;
  /** Returns the disk use of the content. */
  usedBytes(id: string, signal: AbortSignal): Promise<number>;
}
