import { spawn } from "node:child_process";
import { CliError } from "../errors.ts";
import type { World } from "../world.ts";

/**
 * Runs the user's editor on the file until it exits. Throws if it can't be started or fails. The
 * signal ends it.
 */
export async function openEditor(path: string, env: World["env"], signal: AbortSignal): Promise<void> {
  const editor = [env.VISUAL, env.EDITOR].find((each) => each !== undefined && each.trim() !== "") ?? "vi";
  // The variable may contain flags, so the shell splits it. The path is passed as an argument.
  const child = spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", path], { stdio: "inherit", env: { ...env } });
  const stop = (): void => void child.kill();
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (signal.aborted) stop();
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    if (signal.aborted) throw signal.reason;
    if (code !== 0)
      throw new CliError("REFUSED", `the editor "${editor}" failed: set EDITOR to one that works here`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
