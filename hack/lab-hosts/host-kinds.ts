import { SetupError } from "../lib/setup-error.ts";
import type { HostDriver } from "./host-driver.ts";
import { nspawnDriver } from "./nspawn-driver.ts";
import { umlDriver } from "./uml-driver.ts";

const DRIVERS: Readonly<Record<string, (lab: string) => HostDriver>> = {
  nspawn: nspawnDriver,
  uml: umlDriver,
};
export const HOST_KINDS: readonly string[] = Object.keys(DRIVERS);

/** Returns the driver of this kind for the lab; throws BAD_USAGE if there is no such kind. */
export function driverFor(kind: string, lab: string): HostDriver {
  const driver = DRIVERS[kind];
  if (driver === undefined)
    throw new SetupError("BAD_USAGE", `--kind ${kind} is not valid`, `give ${HOST_KINDS.join(" or ")}`);
  return driver(lab);
}

/** Returns the kinds of hosts that tests run on: those of FORAGE_LAB_KINDS, by default the fastest. */
export function testedKinds(env: NodeJS.ProcessEnv): readonly string[] {
  return (env.FORAGE_LAB_KINDS ?? "nspawn").split(" ").filter(Boolean);
}

/** Returns the variable with the reason why this machine can't boot hosts of the kind. */
export function labMissingVariable(kind: string): string {
  return `FORAGE_LAB_MISSING_${kind.toUpperCase()}`;
}

/** Returns the reason why tests of booted hosts of the kind are left out on this machine, false if they run. */
export function missingForLab(kind: string, env: NodeJS.ProcessEnv): string | false {
  return env[labMissingVariable(kind)] || false;
}
