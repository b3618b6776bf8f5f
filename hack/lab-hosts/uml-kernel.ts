import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { goArchitecture } from "../lib/architecture.ts";
import { cacheDir } from "../lib/cache-dir.ts";
import { debianArchive } from "../lib/debian-archive.ts";
import { type HostTool, installMissing } from "../lib/host-tools.ts";
import { type RunResult, run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";

/** The first Debian release whose kernel runs user-mode Linux without ptrace, which is much faster. */
const SUITE = "trixie-backports";
/** The package that depends on the source of the suite's newest kernel, such as linux-source-7.3. */
const NEWEST_SOURCE = "linux-source";
/** All options that a host needs: cgroups, namespaces, nftables, bridges, netem, ext4, hostfs. Every other option is off. */
const OPTIONS = join(import.meta.dirname, "uml.config");
/** Most of the source is for other processors and devices. The files that describe options refer to each other, so those stay. */
const OTHER_PARTS = [
  ...["arch/arm*", "arch/mips", "arch/powerpc", "tools/perf", "tools/testing", "sound"],
  ...["accel", "gpu", "media", "net/ethernet", "net/wireless", "scsi", "staging", "infiniband"].map(
    (path) => `drivers/${path}`,
  ),
];
const LEFT_OUT = [
  "Documentation/*/*",
  ...OTHER_PARTS.flatMap((path) => [`${path}/*.[chS]`, `${path}/*.dts`, `${path}/*.dtsi`]),
];

const TOOLS: readonly HostTool[] = [
  { package: "build-essential", isThere: () => existsSync("/usr/bin/gcc") && existsSync("/usr/bin/make") },
  { package: "flex", isThere: () => existsSync("/usr/bin/flex") },
  { package: "bison", isThere: () => existsSync("/usr/bin/bison") },
  { package: "bc", isThere: () => existsSync("/usr/bin/bc") },
  { package: "xz-utils", isThere: () => existsSync("/usr/bin/xz") },
];
const DOWNLOAD_LIMIT_MS = 15 * 60_000;
const BUILD_LIMIT_MS = 120 * 60_000;

/** Returns the path of the user-mode kernel, and builds it unless the cache has one of the same suite and options. */
export async function ensureUmlKernel(report: (detail: string) => void): Promise<string> {
  if (goArchitecture() !== "amd64")
    throw new SetupError(
      "BAD_USAGE",
      "user-mode Linux runs on amd64 only",
      "leave --kind out, or use an amd64 machine",
    );
  const kernels = join(cacheDir(), "lab-kernels");
  const kernel = join(kernels, `linux-${contentHash()}`);
  if (existsSync(kernel)) return kernel;
  await installMissing(TOOLS, { report });
  report(`building the newest kernel of ${SUITE} as a program (once; a few minutes)`);
  mkdirSync(kernels, { recursive: true });
  removeAbandoned(kernels, Date.now());
  const dir = mkdtempSync(join(kernels, "partial-"));
  try {
    copyFileSync(await buildKernel(dir), `${kernel}.partial`);
    chmodSync(`${kernel}.partial`, 0o755);
    renameSync(`${kernel}.partial`, kernel);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return kernel;
}

/** Removes the sources of builds that were killed. They take a gigabyte each. */
function removeAbandoned(kernels: string, nowMs: number): void {
  for (const name of readdirSync(kernels)) {
    const path = join(kernels, name);
    if (name.startsWith("partial-") && statSync(path).mtimeMs < nowMs - BUILD_LIMIT_MS)
      rmSync(path, { recursive: true, force: true });
  }
}

async function buildKernel(dir: string): Promise<string> {
  const source = await unpackSource(dir);
  const make = (target: string, env: Readonly<Record<string, string>> = {}): Promise<unknown> =>
    run("make", ["ARCH=um", `--jobs=${availableParallelism()}`, target], {
      ...{ cwd: source, env },
      timeoutMs: BUILD_LIMIT_MS,
    });
  await make("allnoconfig", { KCONFIG_ALLCONFIG: OPTIONS });
  const dropped = droppedOptions(
    readFileSync(OPTIONS, "utf8"),
    readFileSync(join(source, ".config"), "utf8"),
  );
  if (dropped.length > 0)
    throw new SetupError(
      "COMMAND_FAILED",
      `${basename(source)} does not take these options: ${dropped.join(", ")}`,
      `add what they depend on to ${OPTIONS}`,
    );
  await make("linux");
  return join(source, "linux");
}

/** Returns the requested lines that the configuration lacks. Kconfig silently drops an option whose dependencies are off. Pure. */
export function droppedOptions(requested: string, configuration: string): readonly string[] {
  const lines = new Set(configuration.split("\n"));
  return requested.split("\n").filter((line) => line.startsWith("CONFIG_") && !lines.has(line));
}

/** Downloads and unpacks the source. Uses separate package lists, so the machine's sources remain unchanged. */
async function unpackSource(dir: string): Promise<string> {
  const list = join(dir, "sources.list");
  const lists = join(dir, "lists");
  mkdirSync(join(lists, "partial"), { recursive: true });
  writeFileSync(list, `deb ${await debianArchive()} ${SUITE} main\n`);
  const options = [
    ...[`Dir::Etc::sourcelist=${list}`, "Dir::Etc::sourceparts=-", `Dir::State::lists=${lists}`],
    ...["Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache="],
  ];
  const apt = (program: string, ...args: readonly string[]): Promise<RunResult> =>
    run(program, [...options.flatMap((option) => ["-o", option]), ...args], {
      ...{ cwd: dir, env: { LC_ALL: "C" } },
      timeoutMs: DOWNLOAD_LIMIT_MS,
    });
  await apt("apt-get", "update");
  const source = newestSource((await apt("apt-cache", "depends", NEWEST_SOURCE)).stdout);
  await apt("apt-get", "download", source);
  const deb = readdirSync(dir).find((file) => file.endsWith(".deb")) ?? "";
  await run("dpkg-deb", ["--extract", join(dir, deb), join(dir, "package")]);
  const leftOut = LEFT_OUT.map((path) => `--exclude=${source}/${path}`);
  const archive = join(dir, "package/usr/src", `${source}.tar.xz`);
  await run("tar", ["--extract", "--wildcards", ...leftOut, "--file", archive], {
    cwd: dir,
    timeoutMs: DOWNLOAD_LIMIT_MS,
  });
  return join(dir, source);
}

/** Returns the package that the output of `apt-cache depends linux-source` names. Pure. */
export function newestSource(depends: string): string {
  const [, source] = /^ *Depends: (linux-source-[\d.]+)$/m.exec(depends) ?? [];
  if (source !== undefined) return source;
  throw new SetupError(
    "NOT_READY",
    `${NEWEST_SOURCE} of ${SUITE} names no source of a kernel`,
    "look for linux-source at packages.debian.org, and name a suite that has it in hack/lab-hosts/uml-kernel.ts",
  );
}

/** A kernel in the cache remains when the suite has a newer one, so that hosts can boot without a network. */
function contentHash(): string {
  return createHash("sha256").update(SUITE).update(readFileSync(OPTIONS)).digest("hex").slice(0, 16);
}
