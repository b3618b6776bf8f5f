/**
 * The only shim whose children are known to be its container's programs; others may run them elsewhere, for example in
 * virtual machines.
 */
export const SHIM_PROGRAM = "containerd-shim-runc-v2";

/** Returns the value of a shim's option; empty if the option is absent. */
export function shimOption(argv: readonly string[], name: string): string {
  const at = argv.indexOf(name);
  return at < 0 ? "" : (argv[at + 1] ?? "");
}
