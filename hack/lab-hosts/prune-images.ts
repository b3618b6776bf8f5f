import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { unmountBelow } from "../lib/mounts.ts";

/** Another run may be building an image, or about to boot a host from it. */
const IN_USE_MS = 60 * 60_000;

/** Removes all but the images that were used last or lately, and those that hosts of a lab have mounted. */
export async function pruneImages(images: string, kept: number, nowMs: number): Promise<void> {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8");
  const byUse = readdirSync(images)
    .map((name) => join(images, name))
    .map((dir) => ({ dir, usedMs: statSync(dir).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { dir, usedMs } of byUse.slice(kept)) {
    if (usedMs > nowMs - IN_USE_MS || mounts.includes(`=${dir}/`)) continue;
    // A build that was killed may have left mounts.
    await unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}
