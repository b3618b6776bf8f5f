import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import type { Progress } from "../instance/progress.ts";
import { type Architecture, goArchitecture } from "../lib/architecture.ts";
import { ensurePinnedNerdctl } from "../lib/nerdctl.ts";
import { run } from "../lib/run.ts";
import { buildDeb } from "./build-deb.ts";
import { buildTarball } from "./build-tarball.ts";
import { type ContentInputs, contentsOf, PACKAGES } from "./contents.ts";
import { collectDocuments, documentEntries } from "./documents.ts";
import { assertArchitecture } from "./elf.ts";
import { NODE_ARCHITECTURE } from "./native-packages.ts";
import { ensureNpmPackage } from "./npm-package.ts";
import type { PackageFlags } from "./package-flags.ts";

/** Builds the packages that the flags request and returns their paths. */
export async function buildPackages(
  checkout: string,
  flags: PackageFlags,
  progress: Progress,
): Promise<string[]> {
  const { step } = progress;
  await step("programs bundled", () =>
    bundlePrograms({ root: checkout, outDir: join(checkout, "dist"), programs: PROGRAMS }),
  );
  const documents = await step("manual pages and completion", () => collectDocuments(checkout));
  const version = flags.version ?? versionOf(checkout);
  const epochSeconds = await sourceTime(checkout);
  mkdirSync(flags.outDir, { recursive: true });
  const built: string[] = [];
  for (const architecture of flags.architectures) {
    const inputs = await step(`node and nerdctl for ${architecture}`, (report) =>
      inputsFor(checkout, architecture, report),
    );
    const contents = PACKAGES.map((name) => ({
      name,
      entries: [...contentsOf(name, inputs), ...documentEntries(name, checkout, documents)],
    }));
    for (const { entries } of contents) assertArchitecture(entries, architecture);
    const { outDir, compressionLevel } = flags;
    const common = {
      version,
      architecture,
      outDir,
      epochSeconds,
      ...(compressionLevel !== undefined && { compressionLevel }),
    };
    if (flags.formats.includes("deb")) {
      for (const { name, entries } of contents)
        await step(`${name} ${version} for ${architecture}`, async () => {
          built.push(await withDirectory((workDir) => buildDeb({ ...common, name, entries, workDir })));
        });
    }
    if (flags.formats.includes("tar"))
      await step(`archive ${version} for ${architecture}`, async () => {
        built.push(await withDirectory((workDir) => buildTarball({ ...common, contents, workDir })));
      });
  }
  return built;
}

async function inputsFor(
  checkout: string,
  architecture: Architecture,
  report: (detail: string) => void,
): Promise<ContentInputs> {
  const isOwn = architecture === goArchitecture();
  const nodeModules = [join(checkout, "node_modules")];
  const cpu = NODE_ARCHITECTURE[architecture];
  if (!isOwn) {
    report(`downloading node and a native package for ${architecture}`);
    for (const name of [`node-linux-${cpu}`, `@lydell/node-pty-linux-${cpu}`])
      nodeModules.push(await ensureNpmPackage(checkout, name));
  }
  const node = nodeModules
    .map((root) => join(root, `node-linux-${cpu}`, "bin", "node"))
    .find((path) => existsSync(path));
  return {
    ...{ checkout, architecture, nodeModules },
    node: node ?? process.execPath,
    nerdctl: await ensurePinnedNerdctl(architecture, { report }),
    envoy: undefined,
    // The code cache was compiled by the node of this machine.
    codeCache: isOwn,
  };
}

function versionOf(checkout: string): string {
  const manifest = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as {
    readonly version: string;
  };
  return manifest.version;
}

/** Returns the time of the sources: from the environment, or else of the last commit, or else the epoch. */
async function sourceTime(checkout: string): Promise<number> {
  const given = Number(process.env.SOURCE_DATE_EPOCH || Number.NaN);
  if (Number.isSafeInteger(given) && given >= 0) return given;
  const { stdout, exitCode } = await run("git", ["log", "-1", "--format=%ct"], {
    cwd: checkout,
    allowFailure: true,
  });
  return exitCode === 0 ? Number(stdout.trim()) : 0;
}

async function withDirectory<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "forage-package-"));
  try {
    return await work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
