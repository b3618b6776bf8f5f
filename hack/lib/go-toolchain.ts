import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { goArchitecture } from "./architecture.ts";
import { cacheDir } from "./cache-dir.ts";
import { GO_TOOLCHAIN_SUM, GO_VERSION, OLDEST_GO } from "./nerdctl-version.ts";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

/** A go command and the environment it must be run with. */
export interface Go {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** The directory of its downloads and its build cache, a gigabyte. The caller removes it after the build. */
  readonly dir: string;
}

export interface BuildOptions {
  readonly signal?: AbortSignal;
  /** Called with a description of each step. */
  readonly report?: (step: string) => void;
}

// GOTOOLCHAIN=local keeps a newer go from fetching by itself what we pin and check here.
const BASE_ENV = { GOTOOLCHAIN: "local" } as const;
const DOWNLOAD_LIMIT_MS = 10 * 60_000;

/** A Go that is new enough: the host's, else one that any Go can fetch as a module. Debian's is installed for that if there is none. */
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
  // Modules carry no execute bits.
  await run("chmod", ["-R", "u+rwx", join(root, "bin"), join(root, "pkg", "tool")]);
  return { program: join(root, "bin", "go"), env: { ...env, GOROOT: root }, dir };
}

/** Downloads `path@version`, checks it against its known sum and returns the folder it lies in. */
export async function downloadModule(
  go: Go,
  module: string,
  sum: string,
  signal?: AbortSignal,
): Promise<string> {
  // The sum that we pin is what counts. Go from 1.21 on insists on its checksum database for toolchains, while elsewhere
  // that may be out of reach: so without it first, then with it.
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

/** Makes a directory for one build, so that builds beside each other keep theirs, and removes those of processes that have ended. */
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
