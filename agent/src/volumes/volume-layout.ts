import { join } from "node:path";

/**
 * The paths below the volumes' directory. Directories that may contain foreign data (`mounts`) are never deleted
 * recursively. `disk` and `memory` contain only pods' own data and may be.
 */
export class VolumeLayout {
  readonly root: string;

  /** @throws RangeError for a path that can't be passed to nerdctl. */
  constructor(root: string) {
    if (!root.startsWith("/") || /[,:"\n]/.test(root)) {
      throw new RangeError(
        `${root}: volumes need an absolute path without comma, colon, quote or line break`,
      );
    }
    this.root = root;
  }

  /** The directories that contain one directory per pod, such as `mounts`. */
  get homes(): readonly string[] {
    return [this.mounts, this.disk, this.memory];
  }

  get mounts(): string {
    return join(this.root, "mounts");
  }

  get disk(): string {
    return join(this.root, "disk");
  }

  /** The tmpfs for all secrets. */
  get memory(): string {
    return join(this.root, "memory");
  }

  get claims(): string {
    return join(this.root, "claims");
  }

  podMounts(podUid: string): string {
    return join(this.mounts, podUid);
  }

  podDisk(podUid: string): string {
    return join(this.disk, podUid);
  }

  podMemory(podUid: string): string {
    return join(this.memory, podUid);
  }

  volumeMount(podUid: string, volume: string): string {
    return join(this.podMounts(podUid), "volume", volume);
  }

  volumeDisk(podUid: string, volume: string): string {
    return join(this.podDisk(podUid), volume);
  }

  volumeMemory(podUid: string, volume: string): string {
    return join(this.podMemory(podUid), volume);
  }

  /** Returns the mount point of a container's n-th pinned mount. Neither part contains the dot between them. */
  pin(podUid: string, container: string, index: number): string {
    return join(this.podMounts(podUid), "pin", `${container}.${index}`);
  }
}
