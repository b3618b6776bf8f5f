import { readFileSync } from "node:fs";
import { run } from "./run.ts";

/** Unmounts everything at or below `dir`, the last mounted first. */
export async function unmountBelow(dir: string): Promise<void> {
  for (const mountPoint of listMounts().reverse()) {
    if (mountPoint !== dir && !mountPoint.startsWith(`${dir}/`)) continue;
    // A lazy unmount succeeds even if a process still uses the mount.
    await run("umount", ["--lazy", "--", mountPoint], { allowFailure: true });
  }
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
