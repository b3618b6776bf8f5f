import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cacheDir } from "./cache-dir.ts";
import { type BuildOptions, ensureGo } from "./go-toolchain.ts";
import { run } from "./run.ts";

const BUILD_LIMIT_MS = 15 * 60_000;

export interface GoProgramOptions extends BuildOptions {
  /** Import path of the program; default: the folder `name` in the module. */
  readonly package?: string;
  /** Whether it contains C, which needs the host's gcc. */
  readonly cgo?: boolean;
  /**
   * Whether to compile without optimizations, which takes a quarter less time. For tests' programs whose own speed
   * doesn't matter.
   */
  readonly quick?: boolean;
  /** Default: 15 minutes. */
  readonly buildLimitMs?: number;
}

/** Returns the path of the program if it was built before from the same sources. */
export function findGoProgram(folder: string, name: string): string | undefined {
  const target = targetOf(folder, name);
  return existsSync(target) ? target : undefined;
}

/**
 * Returns the path of a program built from `folder/name`, where `folder` is a Go module of this project. Builds it
 * again if its sources have changed.
 */
export async function ensureGoProgram(
  folder: string,
  name: string,
  options: GoProgramOptions = {},
): Promise<string> {
  const target = targetOf(folder, name);
  if (existsSync(target)) return target;
  const go = await ensureGo(options);
  const work = mkdtempSync(join(tmpdir(), "forage-go-"));
  try {
    options.report?.(`compiling ${name}`);
    await run(
      go.program,
      [
        ...["build", "-ldflags", "-s -w", ...(options.quick ? ["-gcflags", "all=-N -l"] : [])],
        ...["-o", join(work, name), options.package ?? `./${name}`],
      ],
      {
        cwd: folder,
        // go.sum pins every dependency, so no checksum database is needed.
        env: {
          ...go.env,
          GOFLAGS: "-mod=readonly -modcacherw -buildvcs=false",
          GOSUMDB: "off",
          CGO_ENABLED: options.cgo === true ? "1" : "0",
        },
        timeoutMs: options.buildLimitMs ?? BUILD_LIMIT_MS,
        ...(options.signal && { signal: options.signal }),
      },
    );
    mkdirSync(dirname(target), { recursive: true });
    // A rename across file systems fails, so the file is first copied to the target's directory.
    const partial = `${target}.${process.pid}`;
    cpSync(join(work, name), partial);
    renameSync(partial, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
    rmSync(go.dir, { recursive: true, force: true });
  }
  return target;
}

function targetOf(folder: string, name: string): string {
  return join(cacheDir(), "go-programs", `${name}-${sumOf(folder)}`);
}

function sumOf(folder: string): string {
  const hash = createHash("sha256");
  for (const path of globSync("{go.mod,go.sum,*/*.go}", { cwd: folder }).sort())
    hash.update(`${path}\0`).update(readFileSync(join(folder, path)));
  return hash.digest("hex").slice(0, 16);
}
