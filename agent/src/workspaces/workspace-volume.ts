import { mkdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@forage/common/log";
import { canUseImages, makeImage, mountImage } from "../volumes/disk-image.ts";
import { measureUse } from "../volumes/disk-use-watch.ts";
import { detachLoopDevicesOf } from "../volumes/loop-devices.ts";
import { Mounts, removeMountPoint } from "../volumes/mounts.ts";
import type { ChildRunner } from "../volumes/run-child.ts";
import { VolumeError } from "../volumes/volumes.ts";
import { WorkspaceError } from "./workspace-error.ts";
import type { WorkspaceLayout } from "./workspace-layout.ts";
import { exists } from "./workspace-records.ts";

export interface WorkspaceVolumesOptions {
  readonly layout: WorkspaceLayout;
  readonly children: ChildRunner;
  readonly warn: Log["warn"];
}

/**
 * The file systems that hold the content of workspaces. With a quota, a workspace has its own file system in a sparse
 * image. Without a quota, or on hosts without loop devices, the content is in a directory.
 */
export class WorkspaceVolumes {
  readonly #options: WorkspaceVolumesOptions;
  readonly #mounts: Mounts;
  #imagesWork: boolean | undefined;

  constructor(options: WorkspaceVolumesOptions) {
    this.#options = options;
    this.#mounts = new Mounts(options.children);
  }

  /** Mounts or creates the volume. Cheap if it is mounted already. The kind of an existing volume never changes. */
  async open(id: string, quotaBytes: number, signal: AbortSignal): Promise<void> {
    const { layout, children } = this.#options;
    const [target, file] = [layout.volume(id), layout.image(id)];
    const tools = { children, mounts: this.#mounts };
    const image = { file, kind: "thin", sizeBytes: quotaBytes } as const;
    try {
      const isImage = await exists(file);
      if (!isImage && (quotaBytes === 0 || (await exists(target)) || !(await this.#canUseImages(signal)))) {
        await mkdir(target, { recursive: true, mode: 0o700 });
        return;
      }
      if (!isImage) await makeImage(image, tools, signal);
      if (!(await this.#mounts.isMounted(target))) await mountImage(image, target, tools, signal);
    } catch (error) {
      throw toWorkspaceError(error, signal);
    }
  }

  /** Unmounts the volume. Its data stays. */
  async close(id: string, signal: AbortSignal): Promise<void> {
    const { layout, children } = this.#options;
    try {
      if (!(await exists(layout.image(id)))) return;
      await this.#mounts.unmountAll(layout.volume(id), signal);
      await detachLoopDevicesOf(layout.home(id), children, signal);
      await removeMountPoint(layout.volume(id));
    } catch (error) {
      throw toWorkspaceError(error, signal);
    }
  }

  /**
   * Returns the disk use of the content. For a workspace's own file system it is known; otherwise all files are added
   * up.
   */
  async usedBytes(id: string, signal: AbortSignal): Promise<number> {
    const { layout, children } = this.#options;
    if (!(await exists(layout.image(id)))) return await measureUse(layout.volume(id), children, signal);
    const { blocks, bfree, bsize } = await statfs(layout.volume(id));
    return (blocks - bfree) * bsize;
  }

  async #canUseImages(signal: AbortSignal): Promise<boolean> {
    const { layout, children, warn } = this.#options;
    if (this.#imagesWork === undefined) {
      await mkdir(join(layout.root), { recursive: true, mode: 0o700 });
      this.#imagesWork = await canUseImages(layout.root, { children, mounts: this.#mounts }, signal);
      if (!this.#imagesWork)
        warn({ event: "workspace-quotas-need-loop-devices", effect: "quotas are not enforced" });
    }
    return this.#imagesWork;
  }
}

function toWorkspaceError(error: unknown, signal: AbortSignal): WorkspaceError {
  signal.throwIfAborted();
  if (!(error instanceof VolumeError)) return WorkspaceError.from(error);
  const code = error.code === "NO_ROOM" ? "NO_ROOM" : "HOST_FAILED";
  return new WorkspaceError(code, error.message, { cause: error });
}
