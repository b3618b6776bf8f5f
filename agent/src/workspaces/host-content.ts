import { chown, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@forage/common/log";
import type { GitStatus } from "@forage/proto/content-service-api/initializer";
import {
  type Archive,
  ContentSource,
  type TransferOrder,
  type WorkspaceOrder,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { syncDirectory } from "../journal/durable-files.ts";
import { removeTree } from "../volumes/mounts.ts";
import type { ChildRunner } from "../volumes/run-child.ts";
import { WORKSPACE_GID, WORKSPACE_UID } from "./confined.ts";
import type { ContentActions, Initialized, NoteProgress } from "./content-actions.ts";
import { type ConnectContent, downloadArchive } from "./content-client.ts";
import type { GitTools } from "./initialize/clone-repository.ts";
import { type InitializerTarget, runInitializer } from "./initialize/run-initializer.ts";
import { markReady } from "./mark-ready.ts";
import { checkoutLocationOf, readGitStatus } from "./read-git-status.ts";
import { storeArchive } from "./store-archive.ts";
import { unpackArchive } from "./tar.ts";
import { WorkspaceError } from "./workspace-error.ts";
import type { WorkspaceLayout } from "./workspace-layout.ts";
import { exists, type WorkspaceRecords } from "./workspace-records.ts";
import { WorkspaceVolumes } from "./workspace-volume.ts";

export interface HostContentOptions {
  readonly layout: WorkspaceLayout;
  readonly records: Pick<WorkspaceRecords, "discard">;
  readonly children: ChildRunner;
  readonly connect: ConnectContent;
  readonly warn: Log["warn"];
  readonly git: GitTools;
}

// The time limit for writing back everything that an initializer has written.
const SYNC_MS = 600_000;
// Enough for a burst of stops. Beyond this number disposals wait; otherwise a fast succession of workspaces would fill
// the disk.
const REMAINS_MAX = 1_000;
// A restore reads this in about a second. More frequent messages would cost more than they are worth.
const PROGRESS_STEP_BYTES = 64 * 1024 * 1024;

/** Stores the content of workspaces in directories of this host. */
export class HostContent implements ContentActions {
  readonly #options: HostContentOptions;
  readonly #volumes: WorkspaceVolumes;

  constructor(options: HostContentOptions) {
    this.#options = options;
    const { layout, children, warn } = options;
    this.#volumes = new WorkspaceVolumes({ layout, children, warn });
  }

  contentPath(id: string): string {
    return this.#options.layout.content(id);
  }

  async initialize(order: WorkspaceOrder, note: NoteProgress, signal: AbortSignal): Promise<Initialized> {
    const { layout } = this.#options;
    const id = order.instanceId;
    try {
      await this.#openVolume(order, signal);
      if (await exists(layout.content(id))) return { source: ContentSource.UNSPECIFIED, message: "" };
      note("");
      if (order.contentComplete)
        throw new WorkspaceError("HOST_FAILED", "the content was complete, and is no longer on this node");
      const directory = layout.unfinished(id);
      await this.#makeEmpty(directory, signal);
      const filled = await this.#fill(order, directory, note, signal);
      await markReady(directory, filled.source);
      await this.#complete(id, signal);
      await this.#options.git.secrets.write(id, {});
      return filled;
    } catch (error) {
      signal.throwIfAborted();
      const failure = WorkspaceError.from(error);
      if (!failure.retryable) await this.#options.git.secrets.write(id, {});
      throw failure;
    }
  }

  async open(order: WorkspaceOrder, signal: AbortSignal): Promise<void> {
    await this.#openVolume(order, signal);
    const path = this.contentPath(order.instanceId);
    if (!(await exists(path))) throw new WorkspaceError("HOST_FAILED", `the content is missing: ${path}`);
  }

  async transfer(
    order: WorkspaceOrder,
    transfer: TransferOrder,
    progress: (bytesDone: number) => void,
    signal: AbortSignal,
  ): Promise<Archive> {
    const { layout, connect } = this.#options;
    const id = order.instanceId;
    try {
      await this.#openVolume(order, signal);
      const content = layout.content(id);
      if (!(await exists(content)))
        throw new WorkspaceError("INVALID", "there is no complete content to make an archive of");
      const directory = layout.archives(id);
      const name = layout.archiveName(transfer.id);
      return await storeArchive({ content, directory, name, instanceId: id, transfer }, connect, {
        signal,
        progress,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw WorkspaceError.from(error);
    }
  }

  async readGitStatus(order: WorkspaceOrder, signal: AbortSignal): Promise<GitStatus | undefined> {
    const below = checkoutLocationOf(order.initializer);
    if (below === undefined) return undefined;
    await this.#openVolume(order, signal);
    return await readGitStatus({ directory: this.contentPath(order.instanceId), below, signal });
  }

  async keepArchives(id: string, transferIds: readonly string[]): Promise<void> {
    const { layout } = this.#options;
    const directory = layout.archives(id);
    const kept = transferIds.map((transferId) => layout.archiveName(transferId));
    const names = await readdir(directory).catch(() => []);
    for (const name of names) {
      if (!kept.some((it) => name.startsWith(it))) await rm(join(directory, name), { force: true });
    }
  }

  async dispose(id: string, signal: AbortSignal): Promise<void> {
    try {
      const remains = await this.remains();
      if (remains.length >= REMAINS_MAX && !remains.includes(id))
        throw new WorkspaceError(
          "UNAVAILABLE",
          `the files of ${remains.length} other workspaces must be deleted first`,
        );
      await this.#volumes.close(id, signal);
      await this.#options.records.discard(id);
    } catch (error) {
      signal.throwIfAborted();
      throw WorkspaceError.from(error);
    }
  }

  async remains(): Promise<readonly string[]> {
    const { discarded } = this.#options.layout;
    return (await exists(discarded)) ? await readdir(discarded) : [];
  }

  async removeRemains(id: string, signal: AbortSignal): Promise<void> {
    const { layout, children } = this.#options;
    await removeTree(layout.discardedOf(id), children, signal, { background: true });
  }

  usedBytes(id: string, signal: AbortSignal): Promise<number> {
    return this.#volumes.usedBytes(id, signal);
  }

  #openVolume({ instanceId, quotaBytes }: WorkspaceOrder, signal: AbortSignal): Promise<void> {
    return this.#volumes.open(instanceId, Number(quotaBytes), signal);
  }

  async #fill(
    order: WorkspaceOrder,
    directory: string,
    note: NoteProgress,
    signal: AbortSignal,
  ): Promise<Initialized> {
    const target = { directory, order, note, signal };
    if (order.restore !== undefined) {
      await this.#restore(order.restore, target);
      return { source: ContentSource.BACKUP, message: "" };
    }
    return await runInitializer(
      {
        ...this.#options.git,
        restore: (archive, of) => this.#restore(archive, of),
        clear: (path, abort) => this.#makeEmpty(path, abort),
      },
      target,
    );
  }

  async #restore(archive: Archive, { directory, order, note, signal }: InitializerTarget): Promise<void> {
    const total = toMebibytes(Number(archive.sizeBytes));
    note(`restoring ${total}`);
    let steps = 0;
    const progress = (bytes: number) => {
      if (bytes < (steps + 1) * PROGRESS_STEP_BYTES) return;
      steps = Math.floor(bytes / PROGRESS_STEP_BYTES);
      note(`restoring ${toMebibytes(bytes)} of ${total}`);
    };
    const chunks = downloadArchive(this.#options.connect, order.instanceId, archive, { signal, progress });
    await unpackArchive(chunks, directory, signal);
  }

  /**
   * Renames the content once every file is on disk. After a crash, content under this name is therefore always
   * complete.
   */
  async #complete(id: string, signal: AbortSignal): Promise<void> {
    const { layout, children } = this.#options;
    const unfinished = layout.unfinished(id);
    await children.must("sync", ["--file-system", "--", unfinished], { signal, timeoutMs: SYNC_MS });
    await rename(unfinished, layout.content(id));
    await syncDirectory(layout.volume(id));
  }

  async #makeEmpty(directory: string, signal: AbortSignal): Promise<void> {
    if (await exists(directory)) await removeTree(directory, this.#options.children, signal);
    await mkdir(directory, { mode: 0o755 });
    await chown(directory, WORKSPACE_UID, WORKSPACE_GID);
  }
}

function toMebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 / 1024)} MiB`;
}
