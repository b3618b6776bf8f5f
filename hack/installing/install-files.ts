import { chmodSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { AGENT_ENVIRONMENT, AGENT_NODE_OPTIONS } from "../instance/describe-programs.ts";
import { copyRuntimePackages } from "./runtime-packages.ts";

/** The parts that a host can have, in the order of their start. */
export const PARTS = ["coordinator", "agent"] as const;
export type Part = (typeof PARTS)[number];

export interface InstallFilesOptions {
  /** The checkout, with `dist/` made. */
  readonly checkout: string;
  /** "/" or the directory that stands for it. */
  readonly root: string;
  readonly parts: readonly Part[];
  /** node and nerdctl to install. */
  readonly node: string;
  readonly nerdctl: string | undefined;
  /** Envoy's program, for hosts that serve routes; undefined: what is installed stays. */
  readonly envoy?: string | undefined;
}

export const LOG_READER_UNIT = "forage-logs.service";
export const LOG_READER_SOCKET = "forage-logs.socket";
export const LOG_GUARD_UNIT = "forage-log-guard.service";

const LIB = "usr/lib/forage";
const UNITS = "usr/lib/systemd/system";
/** The loader last: it starts the other two. */
const COMMAND_FILES = ["forage.cjs", "forage.cache", "forage.mjs"];
const COMMAND = `#!/bin/sh
exec /${LIB}/node /${LIB}/forage.mjs "$@"
`;

/** Nomad starts it from a link or a copy in its plugin_dir; the file's name is the label of the `plugin` block. */
const DRIVER_COMMAND = "forage-nomad-driver";
const DRIVER_LAUNCHER = `#!/bin/sh
${Object.entries(AGENT_ENVIRONMENT)
  .map(([name, value]) => `export ${name}=${value}\n`)
  .join("")}exec /${LIB}/node ${AGENT_NODE_OPTIONS.join(" ")} /${LIB}/nomad-driver.mjs "$@"
`;

export function unitOf(part: Part): string {
  return `forage-${part}.service`;
}

/** The further programs of a part, and their units. */
const BESIDE: Readonly<
  Record<Part, { readonly programs: readonly string[]; readonly units: readonly string[] }>
> = {
  coordinator: { programs: [], units: [] },
  agent: {
    programs: ["logs", "log-guard", "nomad-driver"],
    units: [LOG_READER_SOCKET, LOG_READER_UNIT, LOG_GUARD_UNIT],
  },
};

function unitsOf(part: Part): readonly string[] {
  return [unitOf(part), ...BESIDE[part].units];
}

/** Puts programs and units in their places; configuration only where there is none yet. */
export function installFiles({ checkout, root, parts, node, nerdctl, envoy }: InstallFilesOptions): void {
  const put = (from: string, to: string, mode: number): void => replace(from, join(root, to), mode);
  put(node, `${LIB}/node`, 0o755);
  const programs = [...parts, ...parts.flatMap((part) => BESIDE[part].programs)].map((name) => `${name}.mjs`);
  for (const file of [...programs, ...COMMAND_FILES])
    put(join(checkout, "dist", file), `${LIB}/${file}`, 0o644);
  if (envoy && envoy !== `/${LIB}/envoy`) put(envoy, `${LIB}/envoy`, 0o755);
  if (nerdctl) put(nerdctl, `${LIB}/nerdctl`, 0o755);
  copyRuntimePackages(join(checkout, "node_modules"), join(root, LIB, "node_modules"));
  for (const unit of parts.flatMap(unitsOf)) put(join(checkout, "systemd", unit), `${UNITS}/${unit}`, 0o644);
  put(join(checkout, "systemd/forage.sysusers"), "usr/lib/sysusers.d/forage.conf", 0o644);
  put(join(checkout, "systemd/forage.tmpfiles"), "usr/lib/tmpfiles.d/forage.conf", 0o644);
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  writeFileSync(join(root, "usr/bin/forage"), COMMAND, { mode: 0o755 });
  if (parts.includes("agent"))
    writeFileSync(join(root, LIB, DRIVER_COMMAND), DRIVER_LAUNCHER, { mode: 0o755 });
  const configs = [...parts, ...(parts.includes("coordinator") ? ["cli"] : [])];
  for (const name of configs) {
    const path = `etc/forage/${name}.yaml`;
    if (!existsSync(join(root, path)))
      put(join(checkout, "systemd", path.replace("forage/", "")), path, 0o644);
  }
}

/** Removes the parts' units, and with the last of them all else that `installFiles` puts, but configuration. */
export function removeFiles(root: string, parts: readonly Part[]): void {
  const unitPath = (unit: string): string => join(root, UNITS, unit);
  for (const unit of parts.flatMap(unitsOf)) rmSync(unitPath(unit), { force: true });
  if (PARTS.some((part) => existsSync(unitPath(unitOf(part))))) return;
  for (const path of [
    LIB,
    "usr/bin/forage",
    "usr/lib/sysusers.d/forage.conf",
    "usr/lib/tmpfiles.d/forage.conf",
  ]) {
    rmSync(join(root, path), { recursive: true, force: true });
  }
}

// By renaming, so that a program that runs keeps the file it was started from.
function replace(from: string, to: string, mode: number): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, `${to}.partial`, { dereference: true });
  chmodSync(`${to}.partial`, mode);
  renameSync(`${to}.partial`, to);
}
