import { readFileSync } from "node:fs";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

/**
 * Unmounts everything at or below `dir`, the last mounted first. Throws COMMAND_FAILED if something stays mounted: a
 * caller that went on to remove the directory would delete files of the mount.
 */
export async function unmountBelow(dir: string): Promise<void> {
  const failures: string[] = [];
  for (const mountPoint of mountsBelow(dir).reverse()) {
    // A lazy unmount succeeds even if a process still uses the mount. It fails if the mount has just ended.
    const { exitCode, stderr } = await run("umount", ["--lazy", "--", mountPoint], { allowFailure: true });
    if (exitCode !== 0) failures.push(stderr.trim());
  }
  const left = mountsBelow(dir);
  if (left.length === 0) return;
  throw new SetupError(
    "COMMAND_FAILED",
    [`${left.join(", ")}: still mounted`, ...failures].join("\n"),
    `run: umount --lazy ${left.at(-1)}`,
  );
}

function mountsBelow(dir: string): string[] {
  return listMounts().filter((path) => path === dir || path.startsWith(`${dir}/`));
}

/** Returns the mount points in the order in which they were mounted. */
export function listMounts(): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line) => line.split(" ")[4] ?? [])
    .map((field) =>
      field.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
}
