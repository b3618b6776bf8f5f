import { cp, mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/run.ts";

/** The packages of the project in `node_modules`, which are links to its folders. */
const OWN_PACKAGES = "@forage";

/**
 * Writes the sources of the current commit into a folder, with the generated code, and links the installed packages.
 */
export async function prepareCheckout(root: string, folder: string): Promise<void> {
  const archive = join(folder, "sources.tar");
  await run("git", ["-c", "safe.directory=*", "archive", "--output", archive, "HEAD"], { cwd: root });
  await run("tar", ["-xf", archive, "-C", folder]);
  await cp(join(root, "proto/gen"), join(folder, "proto/gen"), { recursive: true });
  const [from, to] = [join(root, "node_modules"), join(folder, "node_modules")];
  await mkdir(to);
  for (const name of await readdir(from)) {
    const isOwn = name === OWN_PACKAGES;
    if (isOwn) await cp(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
    else await symlink(join(from, name), join(to, name));
  }
}
