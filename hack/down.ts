import { parseDownFlags } from "./instance/flags.ts";
import { describeFailure, showProgress } from "./instance/progress.ts";
import { takeDown } from "./instance/take-down.ts";
import { SetupError } from "./lib/setup-error.ts";

const color = process.stderr.isTTY === true && !process.env.NO_COLOR;
const progress = showProgress(
  (line) => console.error(line),
  color,
  () => performance.now(),
);

try {
  const { dataDir } = parseDownFlags(process.argv.slice(2), process.env.FORAGE_START_DIR ?? process.cwd());
  await takeDown(dataDir, progress);
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = error instanceof SetupError && error.code === "BAD_USAGE" ? 2 : 1;
}
