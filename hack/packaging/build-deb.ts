import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Architecture } from "../lib/architecture.ts";
import { run } from "../lib/run.ts";
import { CONFIGURATION_OF, type PackageName } from "./contents.ts";
import { controlText } from "./control.ts";
import type { Entry } from "./entry.ts";
import { stageEntries } from "./stage.ts";

export interface DebOptions {
  readonly name: PackageName;
  readonly version: string;
  readonly architecture: Architecture;
  readonly entries: readonly Entry[];
  /** An empty directory for the package's tree. */
  readonly workDir: string;
  readonly outDir: string;
  /** The modification time of all files, in seconds since 1970, so equal content gives an equal package. */
  readonly epochSeconds: number;
  /** The level of zstd. 0: the files are not compressed. Default: 9. */
  readonly compressionLevel?: number;
}

const SCRIPTS = ["postinst", "prerm", "postrm"] as const;
const BUILD_LIMIT_MS = 10 * 60_000;

/** Builds one Debian package and returns its path. */
export async function buildDeb(options: DebOptions): Promise<string> {
  const { name, version, architecture, workDir, outDir } = options;
  chmodSync(workDir, 0o755);
  const { bytes, sums } = stageEntries(workDir, options.entries);
  const control = join(workDir, "DEBIAN");
  mkdirSync(control, { mode: 0o755 });
  writeFileSync(
    join(control, "control"),
    controlText(name, { version, architecture, installedBytes: bytes }),
  );
  writeFileSync(join(control, "md5sums"), sums);
  const configuration = CONFIGURATION_OF[name].map((path) => `/${path}\n`).join("");
  if (configuration !== "") writeFileSync(join(control, "conffiles"), configuration);
  for (const file of [...SCRIPTS, "templates"]) {
    const from = join(import.meta.dirname, "scripts", `${name}.${file}`);
    if (!existsSync(from)) continue;
    copyFileSync(from, join(control, file));
    chmodSync(join(control, file), file === "templates" ? 0o644 : 0o755);
  }
  const path = join(outDir, `${name}_${version}_${architecture}.deb`);
  // zstd decompresses the runtime in a fraction of xz's time. Debian's dpkg supports it from version 12 on.
  const { compressionLevel = 9 } = options;
  const compression = compressionLevel === 0 ? ["-Znone"] : ["-Zzstd", `-z${compressionLevel}`];
  await run("dpkg-deb", ["--root-owner-group", ...compression, "--build", workDir, path], {
    env: { SOURCE_DATE_EPOCH: String(options.epochSeconds) },
    timeoutMs: BUILD_LIMIT_MS,
  });
  return path;
}
