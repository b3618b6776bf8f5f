import { readFileSync } from "node:fs";
import { run } from "./run.ts";

/** Unmounts everything at or below `dir`, the last mounted first. */
export async function unmountBelow(dir: string): Promise<void> {
  for (const mountPoint of listMounts().reverse()) {
    if (mountPoint !== dir && !mountPoint.startsWith(`${dir}/`)) continue;
    // Lazily: what still holds it open must not keep us from cleaning the rest.
    await run("umount", ["--lazy", "--", mountPoint], { allowFailure: true });
  }
}

/** Mount points in the order they were mounted. */
export function listMounts(): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line) => line.split(" ")[4] ?? [])
    .map((field) =>
      field.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
}
