import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { goArchitecture } from "./architecture.ts";
import { cacheDir } from "./cache-dir.ts";
import { GO_TOOLCHAIN_SUM, GO_VERSION, OLDEST_GO } from "./nerdctl-version.ts";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

/** A go command and the environment in which it must run. */
export interface Go {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** The directory of its downloads and its build cache, a gigabyte. The caller must remove it after the build. */
  readonly dir: string;
}

export interface BuildOptions {
  readonly signal?: AbortSignal;
  /** Called with a description of each step. */
  readonly report?: (step: string) => void;
}

// With GOTOOLCHAIN=local, a newer go doesn't download by itself the toolchain that is pinned and checked here.
const BASE_ENV = { GOTOOLCHAIN: "local" } as const;
const DOWNLOAD_LIMIT_MS = 10 * 60_000;

/**
 * Returns a Go that is new enough: the host's, or else one that any Go can download as a module. If the host has none,
 * Debian's is installed for that.
 */
export async function ensureGo(options: BuildOptions): Promise<Go> {
  const dir = makeGoDir();
  const env = {
    ...BASE_ENV,
    GOPATH: join(dir, "path"),
    GOCACHE: join(dir, "build"),
    GOFLAGS: "-modcacherw",
  };
  let program = findGo();
  if (!program) {
    options.report?.("installing Debian's golang-go");
    await run("apt-get", ["install", "--yes", "--no-install-recommends", "golang-go", "ca-certificates"], {
      env: { DEBIAN_FRONTEND: "noninteractive" },
      timeoutMs: DOWNLOAD_LIMIT_MS,
    });
    program = findGo();
  }
  if (!program) throw new SetupError("MISSING_TOOL", "there is no go", "apt-get install golang-go");
  const found = { program, env, dir };
  if (isRecent(await readVersion(found))) return found;
  const arch = goArchitecture();
  options.report?.(`fetching Go ${GO_VERSION}`);
  const module = `golang.org/toolchain@v0.0.1-go${GO_VERSION}.linux-${arch}`;
  const root = await downloadModule(found, module, GO_TOOLCHAIN_SUM[arch], options.signal);
  // Files of modules are not executable.
  await run("chmod", ["-R", "u+rwx", join(root, "bin"), join(root, "pkg", "tool")]);
  return { program: join(root, "bin", "go"), env: { ...env, GOROOT: root }, dir };
}

/** Downloads `path@version`, compares it with its known checksum, and returns its folder. */
export async function downloadModule(
  go: Go,
  module: string,
  sum: string,
  signal?: AbortSignal,
): Promise<string> {
  // The pinned checksum is decisive. Go from 1.21 on requires its checksum database for toolchains, but some machines
  // can't reach it, so the first attempt does without it and the second one with it.
  const answer =
    (await download(go, module, "off", signal)) ?? (await download(go, module, undefined, signal));
  if (!answer?.Dir) {
    throw new SetupError(
      "DOWNLOAD_FAILED",
      `${module} can't be downloaded`,
      "check the network and GOPROXY, then try again",
    );
  }
  if (answer.Sum !== sum) {
    throw new SetupError(
      "DOWNLOAD_FAILED",
      `${module} has sum ${answer.Sum}, expected ${sum}`,
      "check GOPROXY",
    );
  }
  return answer.Dir;
}

async function download(go: Go, module: string, sumdb: "off" | undefined, signal: AbortSignal | undefined) {
  const { stdout, exitCode } = await run(go.program, ["mod", "download", "-json", module], {
    cwd: "/",
    env: { ...go.env, ...(sumdb && { GOSUMDB: sumdb }) },
    timeoutMs: DOWNLOAD_LIMIT_MS,
    allowFailure: true,
    ...(signal && { signal }),
  });
  return exitCode === 0 ? (JSON.parse(stdout) as { Dir?: string; Sum?: string }) : undefined;
}

/**
 * Makes a directory for one build, so parallel builds don't share one, and removes those of processes that have ended.
 */
function makeGoDir(): string {
  mkdirSync(cacheDir(), { recursive: true });
  for (const name of readdirSync(cacheDir())) {
    const pid = /^go-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`))
      rmSync(join(cacheDir(), name), { recursive: true, force: true });
  }
  return mkdtempSync(join(cacheDir(), `go-${process.pid}-`));
}

function findGo(): string | undefined {
  const dirs = [...(process.env.PATH ?? "").split(":"), "/usr/local/go/bin", "/usr/lib/go/bin"];
  return dirs.map((dir) => join(dir, "go")).find((path) => existsSync(path));
}

async function readVersion(go: Go): Promise<readonly number[]> {
  const { stdout } = await run(go.program, ["version"], { env: go.env });
  const [, major = 0, minor = 0, patch = 0] = /go(\d+)\.(\d+)(?:\.(\d+))?/.exec(stdout)?.map(Number) ?? [];
  return [major, minor, patch || 0];
}

function isRecent(version: readonly number[]): boolean {
  const [major = 0, minor = 0, patch = 0] = version;
  return major * 1e6 + minor * 1e3 + patch >= OLDEST_GO[0] * 1e6 + OLDEST_GO[1] * 1e3 + OLDEST_GO[2];
}
