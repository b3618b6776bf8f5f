import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Architecture } from "../lib/architecture.ts";
import { run } from "../lib/run.ts";
import type { PackageName } from "./contents.ts";
import type { Entry } from "./entry.ts";
import { stageEntries } from "./stage.ts";

export interface TarballOptions {
  readonly version: string;
  readonly architecture: Architecture;
  readonly contents: readonly { readonly name: PackageName; readonly entries: readonly Entry[] }[];
  /** An empty directory. */
  readonly workDir: string;
  readonly outDir: string;
  readonly epochSeconds: number;
  /** The level of gzip. Default: 6. */
  readonly compressionLevel?: number;
}

const PACK_LIMIT_MS = 10 * 60_000;

/** Builds an archive of all packages' files, a directory for each, with a script that installs them. Returns its path. */
export async function buildTarball(options: TarballOptions): Promise<string> {
  const { version, architecture, contents, workDir, outDir, epochSeconds } = options;
  const name = `forage-${version}-linux-${architecture}`;
  const root = join(workDir, name);
  mkdirSync(root, { mode: 0o755 });
  for (const { name, entries } of contents) stageEntries(join(root, "packages", name), entries);
  const script = join(root, "install.sh");
  copyFileSync(join(import.meta.dirname, "scripts", "install.sh"), script);
  chmodSync(script, 0o755);
  const path = join(outDir, `${name}.tar.gz`);
  const same = ["--sort=name", `--mtime=@${epochSeconds}`, "--owner=0", "--group=0", "--numeric-owner"];
  await run(
    "tar",
    [
      "--create",
      ...same,
      `--use-compress-program=gzip -n -${options.compressionLevel ?? 6}`,
      "--file",
      path,
      name,
    ],
    {
      cwd: workDir,
      timeoutMs: PACK_LIMIT_MS,
    },
  );
  return path;
}
