import { execFile } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** The host's features that decide whether and how it can run a pod. */
export interface HostFeatures {
  /** The host's own name. Pods on the host's network have it too. */
  readonly hostname: string;
  readonly seLinux: boolean;
  /** Whether the host's kernel has the protocol or can load it. */
  readonly sctp: boolean;
  /** OCI runtimes by the name of their runtime class. */
  readonly runtimeClasses: Readonly<Record<string, string>>;
  /** The directory of seccomp profiles that pods name by a relative path. */
  readonly seccompDir: string;
}

const MODPROBE_TIMEOUT_MS = 5_000;

/**
 * Reads the features, once. If the host gains a feature, its agent has to be restarted, which does not affect
 * containers.
 */
export async function readHostFeatures(
  config: Pick<HostFeatures, "runtimeClasses"> & { readonly dataDir: string },
): Promise<HostFeatures> {
  const [seLinux, sctp] = await Promise.all([hasSeLinux(), hasSctp()]);
  const { runtimeClasses, dataDir } = config;
  return { hostname: hostname(), seLinux, sctp, runtimeClasses, seccompDir: join(dataDir, "seccomp") };
}

/** Reports whether SELinux is enabled, enforcing or permissive; otherwise the file doesn't exist. */
function hasSeLinux(): Promise<boolean> {
  return access("/sys/fs/selinux/enforce").then(
    () => true,
    () => false,
  );
}

async function hasSctp(): Promise<boolean> {
  const protocols = await readFile("/proc/net/protocols", "utf8").catch(() => "");
  if (/^SCTP\s/m.test(protocols)) return true;
  try {
    // A dry run: the kernel loads the module with the first socket.
    await promisify(execFile)("modprobe", ["--dry-run", "--quiet", "sctp"], { timeout: MODPROBE_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  }
}
