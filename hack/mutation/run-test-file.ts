import { spawn } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The time limit of a file. A test that hangs because of a change fails. */
const FILE_LIMIT_MS = 120_000;
/** The number of random histories that a test plays. A change that only a long run would find counts as not found. */
const SEEDS = "100";

/**
 * Runs one test file of a checkout in a separate process group, and returns whether it passes. Ends it when the signal
 * is aborted.
 */
export function passesTestFile(checkout: string, test: string, signal: AbortSignal): Promise<boolean> {
  const watchdog = pathToFileURL(join(checkout, "hack/tests/watchdog.ts")).href;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", watchdog, test], {
      ...{ cwd: checkout, stdio: "ignore", detached: true },
      env: { ...process.env, SEEDS, NODE_COMPILE_CACHE: join(checkout, "node_modules/.compile") },
    });
    const end = (): void => {
      // The process may have ended, and its number may belong to another group by then.
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid, "SIGKILL");
    };
    const timer = setTimeout(end, FILE_LIMIT_MS);
    signal.addEventListener("abort", end, { once: true });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve(code === 0);
    });
  });
}
