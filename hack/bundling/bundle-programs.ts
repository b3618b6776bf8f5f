import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

export interface BundleOptions {
  readonly root: string;
  readonly outDir: string;
  /** Name of the file to make → its entry point, relative to the root. */
  readonly programs: Readonly<Record<string, string>>;
}

export interface BundleResult {
  readonly built: readonly string[];
  readonly unchanged: readonly string[];
  /** Programs whose entry point doesn't exist. */
  readonly missing: readonly string[];
}

export const PROGRAMS: Readonly<Record<string, string>> = {
  coordinator: "coordinator/src/main.ts",
  agent: "agent/src/main.ts",
  logs: "agent/src/log-reader/main.ts",
  forage: "cli/src/main.ts",
  supervisor: "hack/instance/supervise.ts",
};

/** Packages with compiled code beside their JavaScript: they stay in node_modules. */
export const NATIVE_PACKAGES = ["classic-level", "@lydell/node-pty"] as const;

/** What a bundle was made of: each input with its size and time of change. */
type Inputs = Readonly<Record<string, string>>;

// Bundled CommonJS packages ask for node's own modules with require, which a module doesn't have.
const REQUIRE =
  'import { createRequire as createRequireForBundle } from "node:module";\nconst require = createRequireForBundle(import.meta.url);';

/**
 * Makes one file of each program: node starts it in a third of the time and with 40 MB less than from TypeScript.
 * One file rather than several chunks, so that a running program never misses one that a later build replaced.
 * Programs whose inputs haven't changed are left alone.
 */
export async function bundlePrograms(options: BundleOptions): Promise<BundleResult> {
  mkdirSync(options.outDir, { recursive: true });
  const names = Object.keys(options.programs);
  const present = names.filter((name) => existsSync(join(options.root, options.programs[name] ?? "")));
  const built = present.filter((name) => !isUpToDate(options, name));
  await Promise.all(built.map((name) => bundleProgram(options, name)));
  if (built.length > 0) giveToOwner(options);
  return {
    built,
    unchanged: present.filter((name) => !built.includes(name)),
    missing: names.filter((name) => !present.includes(name)),
  };
}

async function bundleProgram({ root, outDir, programs }: BundleOptions, name: string): Promise<void> {
  // Beside the folder and as deep as it, so that the source map's paths are right after the move.
  const partial = `${outDir}.${name}.${process.pid}`;
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { [name]: programs[name] ?? "" },
    outdir: partial,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    banner: { js: REQUIRE },
    external: [...NATIVE_PACKAGES],
    minifyWhitespace: true,
    minifySyntax: true,
    sourcemap: "linked",
    legalComments: "linked",
    metafile: true,
    logLevel: "error",
  });
  makeAscii(join(partial, `${name}.mjs`));
  for (const suffix of [".mjs.map", ".mjs.LEGAL.txt", ".mjs"]) {
    const from = join(partial, `${name}${suffix}`);
    if (existsSync(from)) renameSync(from, join(outDir, `${name}${suffix}`));
  }
  rmSync(partial, { recursive: true });
  const paths = ["package-lock.json", ...Object.keys(metafile.inputs)].filter((path) =>
    existsSync(join(root, path)),
  );
  const inputs: Inputs = Object.fromEntries(paths.map((path) => [path, stamp(join(root, path))]));
  writeFileSync(inputsPath(outDir, name), JSON.stringify(inputs));
}

// A single other character, which esbuild leaves in regular expressions, and node keeps two bytes for each of the text's.
function makeAscii(path: string): void {
  const text = readFileSync(path, "utf8");
  const ascii = text.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  if (ascii !== text) writeFileSync(path, ascii);
}

// The checkout stays its owner's, also when root builds.
function giveToOwner({ root, outDir }: BundleOptions): void {
  const { uid, gid } = statSync(root);
  if (process.getuid?.() !== 0 || uid === 0) return;
  for (const path of [outDir, ...readdirSync(outDir).map((name) => join(outDir, name))])
    chownSync(path, uid, gid);
}

function isUpToDate({ root, outDir, programs }: BundleOptions, name: string): boolean {
  if (!existsSync(join(outDir, `${name}.mjs`)) || !existsSync(inputsPath(outDir, name))) return false;
  try {
    const inputs = JSON.parse(readFileSync(inputsPath(outDir, name), "utf8")) as Inputs;
    return (
      (programs[name] ?? "") in inputs &&
      Object.entries(inputs).every(([path, was]) => stamp(join(root, path)) === was)
    );
  } catch {
    // Cut off while it was written, or an input is gone.
    rmSync(inputsPath(outDir, name), { force: true });
    return false;
  }
}

function stamp(path: string): string {
  const { size, mtimeMs } = statSync(path);
  return `${size} ${mtimeMs}`;
}

function inputsPath(outDir: string, name: string): string {
  return join(outDir, `${name}.inputs.json`);
}
