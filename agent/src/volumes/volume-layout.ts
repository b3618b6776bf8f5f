import { join } from "node:path";

/**
 * The paths below the volumes' directory. Directories with others' data (`mounts`) are never deleted recursively. Those that are
 * (`disk`, `memory`) hold only pods' own data.
 */
export class VolumeLayout {
  readonly root: string;

  /** @throws RangeError for a path that the runtime's client can't take. */
  constructor(root: string) {
    if (!root.startsWith("/") || /[,:"\n]/.test(root)) {
      throw new RangeError(
        `${root}: volumes need an absolute path without comma, colon, quote or line break`,
      );
    }
    this.root = root;
  }

  /** One directory per pod of what `mounts` etc. hold. */
  get homes(): readonly string[] {
    return [this.mounts, this.disk, this.memory];
  }

  get mounts(): string {
    return join(this.root, "mounts");
  }

  get disk(): string {
    return join(this.root, "disk");
  }

  /** A tmpfs for all secrets together. */
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

  /** Returns the path at which a container's n-th mount is pinned. Neither part contains the dot between them. */
  pin(podUid: string, container: string, index: number): string {
    return join(this.podMounts(podUid), "pin", `${container}.${index}`);
  }
}
