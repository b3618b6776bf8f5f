import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Architecture } from "../lib/architecture.ts";
import { type Entry, fileEntry, textEntry } from "./entry.ts";
import { nativePackageEntries } from "./native-packages.ts";
import { nomadDriverLauncher } from "./nomad-driver-launcher.ts";

/** The packages, each after its dependencies. */
export const PACKAGES = ["forage-runtime", "forage", "forage-coordinator", "forage-agent"] as const;
export type PackageName = (typeof PACKAGES)[number];

export interface ContentInputs {
  /** The checkout, with a built `dist/`. */
  readonly checkout: string;
  readonly architecture: Architecture;
  /** The paths of the programs to install. If one is undefined, an installed one remains. */
  readonly node: string;
  readonly nerdctl: string | undefined;
  readonly envoy: string | undefined;
  /** Directories in which native npm packages are searched for. */
  readonly nodeModules: readonly string[];
  /** Whether the package contains the compiled code of the command, which belongs to one node program. */
  readonly codeCache: boolean;
}

const LIB = "usr/lib/forage";
const UNITS = "usr/lib/systemd/system";
const START = `#!/bin/sh\nexec /${LIB}/node`;

/** The units of the package, the one of its daemon first. */
export const UNITS_OF: Readonly<Record<PackageName, readonly string[]>> = {
  "forage-runtime": [],
  forage: [],
  "forage-coordinator": ["forage-coordinator.service"],
  "forage-agent": [
    "forage-agent.service",
    "forage-logs.socket",
    "forage-logs.service",
    "forage-log-guard.service",
  ],
};

/** The files that operators edit. An upgrade keeps their changes. */
export const CONFIGURATION_OF: Readonly<Record<PackageName, readonly string[]>> = {
  "forage-runtime": [],
  forage: [],
  "forage-coordinator": ["etc/forage/coordinator.yaml", "etc/forage/cli.yaml"],
  "forage-agent": ["etc/forage/agent.yaml"],
};

/**
 * The script of the agent's command. Tasks of operators are in a separate program, so the agent's memory doesn't
 * contain their code.
 */
const AGENT = `#!/bin/sh
case "\${1:-}" in
  join | check | support-bundle | --help | -h) exec /${LIB}/node /${LIB}/agent-setup.mjs "$@" ;;
  *) exec /${LIB}/node /${LIB}/agent.mjs "$@" ;;
esac
`;

/** Returns the files of the package, without its documentation. */
export function contentsOf(name: PackageName, inputs: ContentInputs): readonly Entry[] {
  return [...PROGRAMS_OF[name](inputs), ...unitEntries(name, inputs), ...configurationEntries(name, inputs)];
}

const PROGRAMS_OF: Readonly<Record<PackageName, (inputs: ContentInputs) => readonly Entry[]>> = {
  "forage-runtime": ({ node }) => [fileEntry(`${LIB}/node`, node, 0o755)],
  forage: (inputs) => [
    // The loader is last because it starts the other two.
    ...bundled(inputs, ["forage.cjs", ...(inputs.codeCache ? ["forage.cache"] : []), "forage.mjs"]),
    textEntry("usr/bin/forage", `${START} /${LIB}/forage.mjs "$@"\n`, 0o755),
  ],
  "forage-coordinator": (inputs) => [
    ...bundled(inputs, ["coordinator.mjs", "dashboard.json"]),
    ...nativePackageEntries(LIB, "classic-level", inputs),
    textEntry("usr/sbin/forage-coordinator", `${START} /${LIB}/coordinator.mjs "$@"\n`, 0o755),
    fileEntry("usr/lib/sysusers.d/forage-coordinator.conf", join(inputs.checkout, "systemd/forage.sysusers")),
    fileEntry("usr/lib/tmpfiles.d/forage-coordinator.conf", join(inputs.checkout, "systemd/forage.tmpfiles")),
  ],
  "forage-agent": (inputs) => [
    ...bundled(inputs, ["agent.mjs", "agent-setup.mjs", "logs.mjs", "log-guard.mjs", "nomad-driver.mjs"]),
    ...nativePackageEntries(LIB, "@lydell/node-pty", inputs),
    textEntry("usr/sbin/forage-agent", AGENT, 0o755),
    textEntry(
      `${LIB}/forage-nomad-driver`,
      nomadDriverLauncher(`/${LIB}/node`, `/${LIB}/nomad-driver.mjs`),
      0o755,
    ),
    ...program(`${LIB}/nerdctl`, inputs.nerdctl),
    ...program(`${LIB}/envoy`, inputs.envoy),
    fileEntry("usr/lib/tmpfiles.d/forage-agent.conf", join(inputs.checkout, "systemd/forage.tmpfiles")),
  ],
};

function bundled({ checkout }: ContentInputs, files: readonly string[]): Entry[] {
  const all = files.flatMap((file) => [file, `${file}.LEGAL.txt`]);
  return all
    .map((file) => fileEntry(`${LIB}/${file}`, join(checkout, "dist", file)))
    .filter(
      ({ path, source }) =>
        !path.endsWith(".LEGAL.txt") || (source.type === "file" && existsSync(source.path)),
    );
}

/** Returns the entry of a program; none if it is not given or already installed. */
function program(path: string, from: string | undefined): Entry[] {
  return from === undefined || from === `/${path}` ? [] : [fileEntry(path, from, 0o755)];
}

function unitEntries(name: PackageName, { checkout }: ContentInputs): Entry[] {
  return UNITS_OF[name].map((unit) => fileEntry(`${UNITS}/${unit}`, join(checkout, "systemd", unit)));
}

function configurationEntries(name: PackageName, { checkout }: ContentInputs): Entry[] {
  return CONFIGURATION_OF[name].map((path) =>
    fileEntry(path, join(checkout, "systemd", path.replace("etc/forage/", "etc/"))),
  );
}
