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
import { join } from "node:path";
import { goArchitecture } from "../lib/architecture.ts";
import { cacheDir } from "../lib/cache-dir.ts";
import { debianArchive } from "../lib/debian-archive.ts";
import { type HostTool, installMissing } from "../lib/host-tools.ts";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";

/** The first Debian release whose kernel runs user-mode Linux without ptrace, which is much faster. */
const SUITE = "trixie-backports";
const SOURCE = "linux-source-7.3";
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

/** Returns the path of the user-mode kernel, and builds it unless the cache has one of the same source and options. */
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
  report(`building ${SOURCE} as a program (once; a few minutes)`);
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
      `${SOURCE} does not take these options: ${dropped.join(", ")}`,
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
  const options = [`Dir::Etc::sourcelist=${list}`, "Dir::Etc::sourceparts=-", `Dir::State::lists=${lists}`];
  const apt = (...args: readonly string[]): Promise<unknown> =>
    run("apt-get", [...options.flatMap((option) => ["-o", option]), ...args], {
      cwd: dir,
      timeoutMs: DOWNLOAD_LIMIT_MS,
    });
  await apt("update");
  await apt("download", SOURCE);
  const deb = readdirSync(dir).find((file) => file.endsWith(".deb")) ?? "";
  await run("dpkg-deb", ["--extract", join(dir, deb), join(dir, "package")]);
  const leftOut = LEFT_OUT.map((path) => `--exclude=${SOURCE}/${path}`);
  const archive = join(dir, "package/usr/src", `${SOURCE}.tar.xz`);
  await run("tar", ["--extract", "--wildcards", ...leftOut, "--file", archive], {
    cwd: dir,
    timeoutMs: DOWNLOAD_LIMIT_MS,
  });
  return join(dir, SOURCE);
}

function contentHash(): string {
  return createHash("sha256").update(SOURCE).update(readFileSync(OPTIONS)).digest("hex").slice(0, 16);
}
