import type { WatchedDirectory } from "../volumes/disk-use-watch.ts";
import type { ContainerRuntime } from "./runtime.ts";

/** A running container whose writable layer has a size limit. */
export interface LimitedRoot {
  readonly podUid: string;
  readonly container: string;
  readonly containerId: string;
  readonly limitBytes: number;
}

export interface RootDiskExcess extends LimitedRoot {
  readonly usedBytes: number;
  /** A sentence for users. */
  readonly message: string;
}

export interface RootDiskWatchOptions {
  readonly runtime: Pick<ContainerRuntime, "ownLayer">;
  /** Measures directories rarely and one after the other, which limits the cost. */
  readonly diskUse: { watch(directory: WatchedDirectory): void; unwatch(path: string): void };
  readonly signal: AbortSignal;
  /** Called with each measurement until the container is gone. */
  readonly exceeded: (excess: RootDiskExcess) => void;
  readonly failed: (root: LimitedRoot, error: unknown) => void;
}

/**
 * Detects containers whose writable layer exceeds its limit. overlayfs has no limits of its own, and all layers of
 * containerd share one file system. Therefore their usage is measured: this can't prevent a write, but it protects the
 * host in time.
 */
export class RootDiskWatch {
  readonly #options: RootDiskWatchOptions;
  /** The watched containers by id. The path is set once the runtime has returned it. */
  readonly #followed = new Map<string, { path?: string }>();

  constructor(options: RootDiskWatchOptions) {
    this.#options = options;
  }

  /** Watches exactly these containers. Cheap for containers that are already watched. */
  follow(roots: readonly LimitedRoot[]): void {
    const ids = new Set(roots.map((it) => it.containerId));
    for (const [id, { path }] of [...this.#followed]) {
      if (ids.has(id)) continue;
      this.#followed.delete(id);
      if (path !== undefined) this.#options.diskUse.unwatch(path);
    }
    for (const root of roots) if (!this.#followed.has(root.containerId)) void this.#begin(root);
  }

  async #begin(root: LimitedRoot): Promise<void> {
    const { runtime, diskUse, signal, exceeded, failed } = this.#options;
    const { containerId, limitBytes } = root;
    const entry: { path?: string } = {};
    this.#followed.set(containerId, entry);
    try {
      const path = await runtime.ownLayer(containerId, signal);
      if (this.#followed.get(containerId) !== entry) return;
      if (path === undefined) throw new Error("the path of its writable layer is unknown");
      entry.path = path;
      const onExceeded = (usedBytes: number) =>
        exceeded({ ...root, usedBytes, message: describe(root, usedBytes) });
      diskUse.watch({ path, limitBytes, exceeded: onExceeded });
    } catch (error) {
      // The look-up is repeated at the next change. The container may just have ended.
      if (this.#followed.get(containerId) === entry) this.#followed.delete(containerId);
      if (!signal.aborted) failed(root, error);
    }
  }
}

function describe({ container, limitBytes }: LimitedRoot, usedBytes: number): string {
  return `container ${container} has written ${mebibytes(usedBytes)} over its image, its ephemeral-storage limit is ${mebibytes(limitBytes)}`;
}

function mebibytes(bytes: number): string {
  return `${Math.round((bytes / 2 ** 20) * 10) / 10} MiB`;
}
