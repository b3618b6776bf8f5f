import { chmodSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { goArchitecture } from "../lib/architecture.ts";
import { type ContentInputs, contentsOf, type PackageName, UNITS_OF } from "../packaging/contents.ts";
import type { Entry } from "../packaging/entry.ts";

/** The parts that a host can have, in the order of their start. */
export const PARTS = ["coordinator", "agent"] as const;
export type Part = (typeof PARTS)[number];

export interface InstallFilesOptions {
  /** The checkout, with a built `dist/`. */
  readonly checkout: string;
  /** "/" or a directory in its place. */
  readonly root: string;
  readonly parts: readonly Part[];
  /** The node and nerdctl programs to install. */
  readonly node: string;
  readonly nerdctl: string | undefined;
  /** Envoy's program, for hosts that serve routes. If undefined, an installed Envoy remains. */
  readonly envoy?: string | undefined;
}

export const LOG_READER_UNIT = "forage-logs.service";
export const LOG_READER_SOCKET = "forage-logs.socket";
export const LOG_GUARD_UNIT = "forage-log-guard.service";

const LIB = "usr/lib/forage";
const UNITS = "usr/lib/systemd/system";
/** The packages that every part needs. */
const SHARED: readonly PackageName[] = ["forage-runtime", "forage"];

export function unitOf(part: Part): string {
  return `forage-${part}.service`;
}

/** Installs programs and units, and configuration only if there is none yet. */
export function installFiles(options: InstallFilesOptions): void {
  const { root, parts } = options;
  const packages = [...SHARED, ...parts.map(packageOf)];
  for (const entry of packages.flatMap((name) => contentsOf(name, inputsOf(options)))) {
    const to = join(root, entry.path);
    if (!isConfiguration(entry) || !existsSync(to)) put(entry, to);
  }
}

/**
 * Removes what `installFiles` installed for the parts, except configuration. Shared files are removed with the last
 * part.
 */
export function removeFiles(root: string, parts: readonly Part[]): void {
  const isThere = (part: Part): boolean => existsSync(join(root, UNITS, unitOf(part)));
  const others = PARTS.filter((part) => !parts.includes(part) && isThere(part));
  for (const unit of parts.flatMap((part) => UNITS_OF[packageOf(part)]))
    rmSync(join(root, UNITS, unit), { force: true });
  const gone =
    others.length > 0 ? parts.flatMap(filesOf) : [...PARTS.flatMap(filesOf), LIB, "usr/bin/forage"];
  for (const path of gone) rmSync(join(root, path), { recursive: true, force: true });
}

/** The files of a part outside the directory of the programs. */
function filesOf(part: Part): string[] {
  return ["sysusers.d", "tmpfiles.d"]
    .map((folder) => `usr/lib/${folder}/forage-${part}.conf`)
    .concat(`usr/sbin/forage-${part}`);
}

function packageOf(part: Part): PackageName {
  return `forage-${part}`;
}

function inputsOf({ checkout, node, nerdctl, envoy }: InstallFilesOptions): ContentInputs {
  const nodeModules = [join(checkout, "node_modules")];
  return { checkout, architecture: goArchitecture(), node, nerdctl, envoy, nodeModules, codeCache: true };
}

function isConfiguration({ path }: Entry): boolean {
  return path.startsWith("etc/");
}

// A rename keeps the old file for programs that run from it.
function put({ mode, source }: Entry, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  const partial = `${to}.partial`;
  if (source.type === "file") cpSync(source.path, partial, { dereference: true });
  else writeFileSync(partial, source.text);
  chmodSync(partial, mode);
  renameSync(partial, to);
}
