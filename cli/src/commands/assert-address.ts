import { CliError } from "../errors.ts";

/** Throws USAGE unless the address of `--coordinator` is one word, because the command that holds it is copied into a shell. */
export function assertAddress(address: string): void {
  if (!/^[A-Za-z0-9.:[\]-]{1,300}$/.test(address))
    throw new CliError("USAGE", `--coordinator: "${address}" is not HOST:PORT`);
}
