import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../lib/setup-error.ts";
import type { LabHost } from "./lab-plan.ts";

/** The delay and loss of the packets that a host sends. */
export interface SlowLink {
  readonly delayMs: number;
  readonly lossPercent: number;
}

/** The state of a lab that is stored between two commands. */
export interface LabState {
  readonly name: string;
  readonly kind: string;
  readonly hosts: readonly LabHost[];
  /** The hosts that are cut off. They can reach each other. */
  readonly cut: readonly string[];
  readonly slow: Readonly<Record<string, SlowLink>>;
}

/** The directory of all labs. It is not in /tmp, which may be a small memory disk. */
export const LABS = "/var/lib/forage-lab";

export interface LabPaths {
  readonly dir: string;
  readonly state: string;
  readonly lock: string;
  /** The directory of packages that hosts install from. */
  readonly packages: string;
  readonly hosts: string;
}

/** Returns the paths of the lab with this name, whether or not it exists. */
export function labPaths(name: string): LabPaths {
  const dir = join(LABS, name);
  return {
    dir,
    state: join(dir, "lab.json"),
    lock: join(LABS, `${name}.lock`),
    packages: join(dir, "packages"),
    hosts: join(dir, "hosts"),
  };
}

/** Returns the names of all labs. */
export function listLabs(): readonly string[] {
  if (!existsSync(LABS)) return [];
  return readdirSync(LABS, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** Reads the state of a lab. Throws NOT_READY if there is no such lab. */
export function readLabState(name: string): LabState {
  const path = labPaths(name).state;
  if (!existsSync(path))
    throw new SetupError("NOT_READY", `there is no lab named ${name}`, "start one: sudo hack/lab up 2");
  return JSON.parse(readFileSync(path, "utf8")) as LabState;
}

export function writeLabState(state: LabState): void {
  const { dir, state: path } = labPaths(state.name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(`${path}.partial`, `${JSON.stringify(state, undefined, 2)}\n`);
  renameSync(`${path}.partial`, path);
}
