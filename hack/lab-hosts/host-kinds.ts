import { SetupError } from "../lib/setup-error.ts";
import type { HostDriver } from "./host-driver.ts";
import { nspawnDriver } from "./nspawn-driver.ts";
import { umlDriver } from "./uml-driver.ts";
import { vagrantDriver } from "./vagrant/vagrant-driver.ts";

const DRIVERS: Readonly<Record<string, (lab: string) => HostDriver>> = {
  nspawn: nspawnDriver,
  uml: umlDriver,
  vagrant: vagrantDriver,
};
const LIMIT_MS = 480_000;
/**
 * The limit of a file on the fastest kind of hosts. The long tests took 9 minutes there, including a partition of 5.
 */
const FILE_LIMIT_MS = 10 * 60_000;
const FULL_FILE_LIMIT_MS = 18 * 60_000;
export const HOST_KINDS: readonly string[] = Object.keys(DRIVERS);
/** The kinds that need no provider of virtual machines, which machines of continuous integration don't have. */
export const FULL_KINDS: readonly string[] = ["nspawn", "uml"];

/** The kind of the hosts that replace virtual machines where Vagrant has no provider. */
export const STAND_IN_KIND = "nspawn";

/** Returns the driver of this kind for the lab; throws BAD_USAGE if there is no such kind. */
export function driverFor(kind: string, lab: string): HostDriver {
  const driver = DRIVERS[kind];
  if (driver === undefined)
    throw new SetupError("BAD_USAGE", `--kind ${kind} is not valid`, `give ${HOST_KINDS.join(" or ")}`);
  return driver(lab);
}

/**
 * Returns the time limits of one test on hosts of the kind, and of one command on them. They leave a large margin for a
 * busy machine.
 */
export function limitFor(kind: string): { readonly timeout: number } {
  return { timeout: LIMIT_MS * driverFor(kind, "none").patience };
}

/** Returns the milliseconds for one file of tests that runs on hosts of all these kinds, one after the other. */
export function fileLimitFor(kinds: readonly string[], isFull: boolean): number {
  const patience = kinds.reduce((sum, kind) => sum + driverFor(kind, "none").patience, 0);
  return Math.max(1, patience) * (isFull ? FULL_FILE_LIMIT_MS : FILE_LIMIT_MS);
}

/** Returns the kinds of hosts that tests run on: those in FORAGE_LAB_KINDS, or the fastest by default. */
export function testedKinds(env: NodeJS.ProcessEnv): readonly string[] {
  return (env.FORAGE_LAB_KINDS ?? "nspawn").split(" ").filter(Boolean);
}

/**
 * Returns the kinds of hosts that the tests of drivers boot: the tested kinds and, unless virtual machines are tested,
 * the kind of the hosts that replace them.
 */
export function bootedKinds(env: NodeJS.ProcessEnv): readonly string[] {
  const kinds = testedKinds(env);
  return kinds.includes("vagrant") || kinds.includes(STAND_IN_KIND) ? kinds : [...kinds, STAND_IN_KIND];
}

/** Returns the variable with the reason why this machine can't boot hosts of the kind. */
export function labMissingVariable(kind: string): string {
  return `FORAGE_LAB_MISSING_${kind.toUpperCase()}`;
}

/** Returns the reason why tests of booted hosts of the kind are skipped on this machine; false if they run. */
export function missingForLab(kind: string, env: NodeJS.ProcessEnv): string | false {
  return env[labMissingVariable(kind)] || false;
}
