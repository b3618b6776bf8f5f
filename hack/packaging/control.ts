import type { Architecture } from "../lib/architecture.ts";
import type { PackageName } from "./contents.ts";

interface Description {
  readonly summary: string;
  readonly details: string;
  readonly section: string;
  /** The packages that it depends on. Those of Forage are added with their version. */
  readonly depends: readonly string[];
  readonly needsForage: readonly PackageName[];
  readonly recommends?: readonly string[];
}

const DESCRIPTIONS: Readonly<Record<PackageName, Description>> = {
  "forage-runtime": {
    summary: "JavaScript runtime of Forage's programs",
    details: "The node program with which the coordinator, the agent and the command run.",
    section: "javascript",
    depends: ["libc6 (>= 2.28)", "libgcc-s1", "libstdc++6 (>= 9)"],
    needsForage: [],
  },
  forage: {
    summary: "command that operates a fleet of container hosts",
    details: "The command of operators, its manual pages and completion for bash, zsh and fish.",
    section: "admin",
    depends: [],
    needsForage: ["forage-runtime"],
  },
  "forage-coordinator": {
    summary: "coordinator of a fleet of container hosts",
    details: "Stores what should run in the fleet, decides where, and serves the API.",
    section: "admin",
    depends: ["systemd (>= 252)", "debconf (>= 1.5)"],
    needsForage: ["forage-runtime", "forage"],
  },
  "forage-agent": {
    summary: "agent that runs the pods of one host of a fleet",
    details:
      "Runs the pods that the coordinator assigns to this host, through nerdctl and containerd. Containers go on while it is restarted or upgraded.",
    section: "admin",
    depends: [
      ...["systemd (>= 252)", "debconf (>= 1.5)"],
      ...["containerd", "runc", "containernetworking-plugins", "nftables", "conntrack", "iproute2"],
      // Filesystems of claims.
      ...["mount", "e2fsprogs"],
      // Archives of workspaces, and their repositories.
      ...["zstd", "git"],
    ],
    needsForage: ["forage-runtime"],
    // They announce addresses of load balancers, and mount NFS volumes.
    recommends: ["busybox | busybox-static", "ndisc6", "libndp-tools", "nfs-common", "forage"],
  },
};

export interface ControlOptions {
  readonly version: string;
  readonly architecture: Architecture;
  readonly installedBytes: number;
}

/** Returns the text of the package's control file. */
export function controlText(
  name: PackageName,
  { version, architecture, installedBytes }: ControlOptions,
): string {
  const { summary, details, section, depends, needsForage, recommends = [] } = DESCRIPTIONS[name];
  // The programs are built and tested together, so packages depend on each other in the same version.
  const own = needsForage.map((needed) => `${needed} (= ${version})`);
  const fields = [
    `Package: ${name}`,
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    "Maintainer: Forage contributors <forage@localhost>",
    `Installed-Size: ${Math.ceil(installedBytes / 1024)}`,
    ...listField("Depends", [...own, ...depends]),
    ...listField("Recommends", recommends),
    `Section: ${section}`,
    "Priority: optional",
    `Description: ${summary}`,
    ` ${details}`,
  ];
  return `${fields.join("\n")}\n`;
}

function listField(name: string, values: readonly string[]): string[] {
  return values.length === 0 ? [] : [`${name}: ${[...new Set(values)].join(", ")}`];
}
