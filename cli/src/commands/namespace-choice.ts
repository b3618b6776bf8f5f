import { CliError } from "../errors.ts";

export const ALL_NAMESPACES_FLAG = { kind: "switch", short: "A", help: "of all namespaces" } as const;

export interface NamespaceFlags {
  readonly namespace?: string | undefined;
  readonly "all-namespaces": boolean;
}

/** Refuses a command line with both one namespace and all. */
export function assertOneChoice(flags: NamespaceFlags): void {
  if (flags["all-namespaces"] && flags.namespace !== undefined)
    throw new CliError("USAGE", "--all-namespaces and --namespace contradict each other");
}

/** Returns the namespace that the flags or the settings name. Empty: all. */
export function chosenNamespace(flags: NamespaceFlags, settings: { readonly namespace: string }): string {
  assertOneChoice(flags);
  return flags["all-namespaces"] ? "" : settings.namespace;
}
