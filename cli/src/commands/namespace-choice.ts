import { CliError } from "../errors.ts";

export const ALL_NAMESPACES_FLAG = { type: "switch", short: "A", help: "of all namespaces" } as const;

export interface NamespaceFlags {
  readonly namespace?: string | undefined;
  readonly "all-namespaces": boolean;
}

/** Throws USAGE if the command line has both a namespace and `--all-namespaces`. */
export function assertOneChoice(flags: NamespaceFlags): void {
  if (flags["all-namespaces"] && flags.namespace !== undefined)
    throw new CliError("USAGE", "--all-namespaces and --namespace contradict each other");
}

/** Returns the namespace given by the flags or the settings; empty means all. */
export function chosenNamespace(flags: NamespaceFlags, settings: { readonly namespace: string }): string {
  assertOneChoice(flags);
  return flags["all-namespaces"] ? "" : settings.namespace;
}
