import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
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
/** The options beyond those of a user-mode kernel: cgroups, namespaces, nftables, bridges, netem, hostfs. */
const FRAGMENT = join(import.meta.dirname, "uml.config");

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
  report(`building ${SOURCE} as a program (once; several minutes of one processor)`);
  mkdirSync(kernels, { recursive: true });
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

async function buildKernel(dir: string): Promise<string> {
  const source = await unpackSource(dir);
  const make = (target: string): Promise<unknown> =>
    run("make", ["ARCH=um", `--jobs=${availableParallelism()}`, target], {
      cwd: source,
      timeoutMs: BUILD_LIMIT_MS,
    });
  await make("defconfig");
  appendFileSync(join(source, ".config"), readFileSync(FRAGMENT));
  await make("olddefconfig");
  await make("linux");
  return join(source, "linux");
}

/** Uses lists of its own: the machine's sources stay as they are. */
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
  await run("tar", ["--extract", "--file", join(dir, "package/usr/src", `${SOURCE}.tar.xz`)], {
    cwd: dir,
    timeoutMs: DOWNLOAD_LIMIT_MS,
  });
  return join(dir, SOURCE);
}

function contentHash(): string {
  return createHash("sha256").update(SOURCE).update(readFileSync(FRAGMENT)).digest("hex").slice(0, 16);
}
