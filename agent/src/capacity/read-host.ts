import { readFile, statfs } from "node:fs/promises";
import { arch, cpus, release } from "node:os";
import { type CgroupLimits, readCgroupLimits } from "./cgroup-limits.ts";
import type { DiskSpace } from "./disk-pressure.ts";

/** The properties of a host that stay the same while it is up. */
export interface HostIdentity {
  /** An id that is new with every boot. */
  readonly bootId: string;
  /** The operating system, for example `Debian GNU/Linux 12 (bookworm)`. */
  readonly os: string;
  readonly kernel: string;
  /** The architecture in Kubernetes' (and Go's) terms: `amd64`, `arm64`. */
  readonly architecture: string;
}

export interface HostMeasure {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly disk: DiskSpace;
}

/** Reads the host's properties. Tests pass their own implementation. */
export interface HostReader {
  identity(): Promise<HostIdentity>;
  /** Measures resources by reading a few small files. `path` is on the file system of the containers. */
  measure(path: string): Promise<HostMeasure>;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

export const hostReader: HostReader = {
  async identity() {
    // Loaded on demand, because it is large and rarely needed.
    const { osInfo } = await import("systeminformation/lib/osinfo.js");
    const { distro, release: version, codename } = await osInfo();
    const name = [distro, version, codename && `(${codename})`].filter(Boolean).join(" ");
    return {
      bootId: (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim(),
      os: name || "Linux",
      kernel: release(),
      architecture: ARCHITECTURES[arch()] ?? arch(),
    };
  },

  async measure(path) {
    const { mem } = await import("systeminformation/lib/memory.js");
    const [memory, limits, disk] = await Promise.all([
      mem(),
      readCgroupLimits("/sys/fs/cgroup", "/proc"),
      readDisk(path),
    ]);
    return { ...limited({ cpuMilli: cpus().length * 1_000, memoryBytes: memory.total }, limits), disk };
  },
};

/** Returns the smaller of the machine's resources and the cgroup's limits. */
export function limited(
  has: { readonly cpuMilli: number; readonly memoryBytes: number },
  limits: CgroupLimits,
): { readonly cpuMilli: number; readonly memoryBytes: number } {
  return {
    cpuMilli: Math.min(has.cpuMilli, limits.cpuMilli ?? Number.POSITIVE_INFINITY),
    memoryBytes: Math.min(has.memoryBytes, limits.memoryBytes ?? Number.POSITIVE_INFINITY),
  };
}

async function readDisk(path: string): Promise<DiskSpace> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(path);
  return {
    totalBytes: bsize * blocks,
    availableBytes: bsize * bavail,
    totalInodes: files,
    availableInodes: ffree,
  };
}
