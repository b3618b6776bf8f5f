import { join } from "node:path";
import { parseInstallFlags } from "./installing/install-flags.ts";
import { installHost } from "./installing/install-host.ts";
import { describeFailure, showProgress } from "./instance/progress.ts";
import { SetupError } from "./lib/setup-error.ts";

const color = process.stderr.isTTY === true && !process.env.NO_COLOR;
const progress = showProgress(
  (line) => console.error(line),
  color,
  () => performance.now(),
);

try {
  const flags = parseInstallFlags(process.argv.slice(2), process.env.FORAGE_START_DIR ?? process.cwd());
  await installHost(join(import.meta.dirname, ".."), flags, progress);
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = error instanceof SetupError && error.code === "BAD_USAGE" ? 2 : 1;
}
