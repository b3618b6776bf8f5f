import { join } from "node:path";
import { describeFailure, showProgress } from "./instance/progress.ts";
import { goArchitecture } from "./lib/architecture.ts";
import { SetupError } from "./lib/setup-error.ts";
import { buildPackages } from "./packaging/build-packages.ts";
import { parsePackageFlags } from "./packaging/package-flags.ts";

const color = process.stderr.isTTY === true && !process.env.NO_COLOR;
const progress = showProgress(
  (line) => console.error(line),
  color,
  () => performance.now(),
);

try {
  // The modes of directories are part of the packages.
  process.umask(0o022);
  const start = process.env.FORAGE_START_DIR ?? process.cwd();
  const flags = parsePackageFlags(process.argv.slice(2), start, goArchitecture());
  for (const path of await buildPackages(join(import.meta.dirname, ".."), flags, progress)) console.log(path);
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = error instanceof SetupError && error.code === "BAD_USAGE" ? 2 : 1;
}
