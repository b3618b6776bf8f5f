import { join } from "node:path";
import { describeFailure, showProgress } from "./instance/progress.ts";
import { parseLabFlags } from "./lab-hosts/lab-flags.ts";
import { runLabCommand } from "./lab-hosts/run-lab-command.ts";
import { SetupError } from "./lib/setup-error.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
const color = process.stderr.isTTY === true && !process.env.NO_COLOR;

try {
  process.umask(0o022);
  process.exitCode = await runLabCommand({
    ...parseLabFlags(process.argv.slice(2)),
    checkout: join(import.meta.dirname, ".."),
    progress: showProgress(
      (line) => console.error(line),
      color,
      () => performance.now(),
    ),
    print: (text) => process.stdout.write(text),
    signal: stop.signal,
  });
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = error instanceof SetupError && error.code === "BAD_USAGE" ? 2 : 1;
}
