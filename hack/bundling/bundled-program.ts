import { join } from "node:path";
import { bundlePrograms, PROGRAMS } from "./bundle-programs.ts";

const ROOT = join(import.meta.dirname, "../..");

/**
 * Returns the path of a program's bundle for tests that start the program many times. It is what hosts run, and starts with
 * a third of the processor time of the source, or less. It is only built if its source has changed.
 */
export async function bundledProgram(name: "agent" | "coordinator" | "forage"): Promise<string> {
  const outDir = join(ROOT, "dist");
  await bundlePrograms({ root: ROOT, outDir, programs: { [name]: PROGRAMS[name] ?? "" } });
  return join(outDir, `${name}.mjs`);
}
