import { join } from "node:path";
import { type RunResult, run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";

/** Runs the CLI against one instance and returns its output, whatever its exit code. */
export type ForageCommand = (
  args: readonly string[],
  options?: { readonly onOutput?: (text: string) => void; readonly timeoutMs?: number },
) => Promise<RunResult>;

export function forageCommand(root: string, configPath: string, signal: AbortSignal): ForageCommand {
  const script = join(root, "dist", "forage.mjs");
  return (args, options = {}) =>
    run(process.execPath, [script, ...args, "--config", configPath], {
      ...options,
      signal,
      allowFailure: true,
      env: withoutSettings(),
    });
}

/** Runs a command and parses its JSON output. Throws with the command's message if it fails. */
export async function askForage(forage: ForageCommand, args: readonly string[]): Promise<unknown> {
  const { stdout, stderr, exitCode } = await forage([...args, "--output", "json"]);
  if (exitCode === 0) return JSON.parse(stdout);
  throw new SetupError("COMMAND_FAILED", `forage ${args.join(" ")}: ${stderr.trim()}`, "see the logs");
}

/** Returns an environment without the user's settings, which are for another instance. */
export function withoutSettings(): Record<string, string> {
  const names = Object.keys(process.env).filter((name) => name.startsWith("FORAGE_"));
  return Object.fromEntries(names.map((name) => [name, ""]));
}
