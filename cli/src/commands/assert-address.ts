import { CliError } from "../errors.ts";

/**
 * Throws USAGE if the address of `--coordinator` is not a single word, because users copy the
 * printed command into a shell.
 */
export function assertAddress(address: string): void {
  if (!/^[A-Za-z0-9.:[\]-]{1,300}$/.test(address))
    throw new CliError("USAGE", `--coordinator: "${address}" is not HOST:PORT`);
}
