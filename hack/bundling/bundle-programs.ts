import { createHash } from "node:crypto";
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
import { type BuildOptions, build } from "esbuild";
import { binaryMessages } from "./binary-messages.ts";
import { buildPage } from "./build-page.ts";
import { InputStamps, stamp } from "./input-stamps.ts";
import { wrapSource } from "./load-compiled.ts";
import { plainBuiltins } from "./plain-builtins.ts";

export interface BundleOptions {
  readonly root: string;
  readonly outDir: string;
  /** The entry point of each program, relative to the root, by the name of the bundle. */
  readonly programs: Readonly<Record<string, string>>;
  /** For compiled programs: the entry point, and the function that compiles the program at `BASE.cjs`. */
  readonly compile?: Readonly<Record<string, (base: string) => Promise<void>>>;
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
  "agent-setup": "agent/src/setup/main.ts",
  logs: "agent/src/log-reader/main.ts",
  "log-guard": "agent/src/log-guard/main.ts",
  "nomad-driver": "agent/src/driver/main.ts",
  forage: "cli/src/main.ts",
  supervisor: "hack/instance/supervise.ts",
  dashboard: "coordinator/dashboard/main.tsx",
};

/** Packages with native code beside their JavaScript. They stay in node_modules. */
export const NATIVE_PACKAGES = ["classic-level", "@lydell/node-pty"] as const;

/** Packages that grpc-js loads only for services which no program has (channelz, ORCA). */
const UNUSED_PACKAGES = ["@grpc/proto-loader"];

/** The folder of the programs that use no message in its JSON form. */
const BINARY_ONLY = "agent/src/";

/**
 * The programs that are compiled ahead of time. The shell starts the command for each completion, and compiling it
 * would take half of the time.
 */
const COMPILE = {
  "cli/src/main.ts": async (base: string): Promise<void> =>
    (await import("./compile-program.ts")).compileForage(base),
};
const LOADER = join(import.meta.dirname, "start-compiled.ts");

// Bundled CommonJS packages use require and __dirname, which modules lack.
const REQUIRE =
  'import { createRequire as createRequireForBundle } from "node:module";\nconst require = createRequireForBundle(import.meta.url);\nconst __dirname = import.meta.dirname;';

/**
 * Bundles each program into one file, or into a loader, a script and its compiled code. Node starts a bundle in a third
 * of the time and with 40 MB less than TypeScript. There is one file instead of several chunks, so a running program
 * never lacks a chunk that a later build replaced. Programs whose inputs haven't changed are skipped.
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

async function bundleProgram(options: BundleOptions, name: string): Promise<void> {
  const { root, outDir } = options;
  const entry = options.programs[name] ?? "";
  const compile = compilerOf(options, name);
  // The partial output is beside the folder and at the same depth, so the source map's paths stay right after the move.
  const partial = `${outDir}.${name}.${process.pid}`;
  const inputs = new InputStamps(root);
  inputs.note("package-lock.json");
  if (isPage(entry)) await buildPage({ root, entry, path: join(partial, `${name}.json`), inputs });
  else if (compile === undefined) await buildInto(partial, { root, name, entry, inputs, ...MODULE });
  else {
    await buildInto(partial, { root, name, entry, inputs, ...SCRIPT });
    await buildInto(partial, { root, name, entry: LOADER, inputs, suffix: ".mjs", format: "esm" });
    wrap(join(partial, `${name}.cjs`));
    await compile(join(partial, name));
  }
  for (const suffix of SUFFIXES) {
    const from = join(partial, `${name}${suffix}`);
    if (existsSync(from)) renameSync(from, join(outDir, `${name}${suffix}`));
  }
  rmSync(partial, { recursive: true });
  writeFileSync(inputsPath(outDir, name), JSON.stringify(inputs));
}

interface Build {
  readonly root: string;
  readonly name: string;
  readonly entry: string;
  readonly inputs: InputStamps;
  readonly suffix: string;
  readonly format: "esm" | "cjs";
  readonly banner?: { readonly js: string };
}

const MODULE = { suffix: ".mjs", format: "esm", banner: { js: REQUIRE } } as const;
/** The format of compiled programs. Node can cache compiled code of scripts only. */
const SCRIPT = { suffix: ".cjs", format: "cjs" } as const;
/** The suffixes in the order in which the files are replaced. The loader accepts no cache of another build. */
const SUFFIXES = [
  ".cjs.map",
  ".cjs.LEGAL.txt",
  ".cjs",
  ".cache",
  ".mjs.map",
  ".mjs.LEGAL.txt",
  ".mjs",
  ".json",
];

async function buildInto(
  outdir: string,
  { root, name, entry, inputs, suffix, ...rest }: Build,
): Promise<void> {
  const options: BuildOptions = {
    absWorkingDir: root,
    entryPoints: { [name]: entry },
    outdir,
    outExtension: { ".js": suffix },
    bundle: true,
    platform: "node",
    target: "node24",
    // Native code in other packages only makes them faster, and they run without it.
    external: [...NATIVE_PACKAGES, "*.node", ...UNUSED_PACKAGES],
    minifyWhitespace: true,
    minifySyntax: true,
    sourcemap: "linked",
    legalComments: "linked",
    plugins: [
      inputs.plugin(),
      plainBuiltins(),
      ...(entry.startsWith(BINARY_ONLY) ? [binaryMessages(root)] : []),
    ],
    logLevel: "error",
    ...rest,
  };
  await build(options);
  makeAscii(join(outdir, `${name}${suffix}`));
}

function compilerOf(
  { programs, compile = COMPILE }: BundleOptions,
  name: string,
): ((base: string) => Promise<void>) | undefined {
  const compilers: Readonly<Record<string, (base: string) => Promise<void>>> = compile;
  return compilers[programs[name] ?? ""];
}

function wrap(path: string): void {
  const source = readFileSync(path, "utf8");
  const id = createHash("sha256").update(source).digest("hex").slice(0, 32);
  writeFileSync(path, wrapSource(source, id));
}

// Node keeps two bytes per character as soon as the text has one other character, and esbuild leaves such characters in
// regular expressions.
function makeAscii(path: string): void {
  const text = readFileSync(path, "utf8");
  const ascii = text.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  if (ascii !== text) writeFileSync(path, ascii);
}

// The files get the checkout's owner, also when root builds.
function giveToOwner({ root, outDir }: BundleOptions): void {
  const { uid, gid } = statSync(root);
  if (process.getuid?.() !== 0 || uid === 0) return;
  for (const path of [outDir, ...readdirSync(outDir).map((name) => join(outDir, name))])
    chownSync(path, uid, gid);
}

function isUpToDate(options: BundleOptions, name: string): boolean {
  const { root, outDir, programs } = options;
  const files = filesOf(options, name);
  if (!files.every((suffix) => existsSync(join(outDir, `${name}${suffix}`)))) return false;
  if (!existsSync(inputsPath(outDir, name))) return false;
  try {
    const inputs = JSON.parse(readFileSync(inputsPath(outDir, name), "utf8")) as Readonly<
      Record<string, string>
    >;
    return (
      (programs[name] ?? "") in inputs &&
      Object.entries(inputs).every(([path, was]) => stamp(join(root, path)) === was)
    );
  } catch {
    // The file was cut off while it was written.
    rmSync(inputsPath(outDir, name), { force: true });
    return false;
  }
}

function filesOf(options: BundleOptions, name: string): readonly string[] {
  if (isPage(options.programs[name] ?? "")) return [".json"];
  return compilerOf(options, name) === undefined ? [".mjs"] : [".mjs", ".cjs", ".cache"];
}

/** Reports whether the entry point is one for browsers. */
function isPage(entry: string): boolean {
  return entry.endsWith(".tsx");
}

function inputsPath(outDir: string, name: string): string {
  return join(outDir, `${name}.inputs.json`);
}
