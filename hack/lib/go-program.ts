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
import { type BuildOptions, ensureGo, goDir } from "./go-toolchain.ts";
import { run } from "./run.ts";

const buildLimitMs = 15 * 60_000;

/**
 * Returns the path of a program built from `folder/name`, where `folder` holds a Go module of ours. It is built again when its
 * sources change.
 */
export async function ensureGoProgram(
  folder: string,
  name: string,
  options: BuildOptions = {},
): Promise<string> {
  const target = join(cacheDir(), "go-programs", `${name}-${sumOf(folder)}`);
  if (existsSync(target)) return target;
  const go = await ensureGo(options);
  const work = mkdtempSync(join(tmpdir(), "forage-go-"));
  try {
    options.report?.(`compiling ${name}`);
    await run(go.program, ["build", "-ldflags", "-s -w", "-o", join(work, name), `./${name}`], {
      cwd: folder,
      // go.sum pins every dependency, so no checksum database is asked.
      env: {
        ...go.env,
        GOFLAGS: "-mod=readonly -modcacherw -buildvcs=false",
        GOSUMDB: "off",
        CGO_ENABLED: "0",
      },
      timeoutMs: buildLimitMs,
      ...(options.signal && { signal: options.signal }),
    });
    mkdirSync(dirname(target), { recursive: true });
    // Across file systems a rename fails, so copy beside the target first.
    const partial = `${target}.${process.pid}`;
    cpSync(join(work, name), partial);
    renameSync(partial, target);
    rmSync(goDir(), { recursive: true, force: true });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return target;
}

function sumOf(folder: string): string {
  const hash = createHash("sha256");
  for (const path of globSync("{go.mod,go.sum,*/*.go}", { cwd: folder }).sort())
    hash.update(`${path}\0`).update(readFileSync(join(folder, path)));
  return hash.digest("hex").slice(0, 16);
}
