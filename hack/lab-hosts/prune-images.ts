import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { unmountBelow } from "../lib/mounts.ts";

/**
 * The time after its last use for which an image is kept. Another run may be building it, or about to boot a host from
 * it.
 */
const IN_USE_MS = 60 * 60_000;

/** Removes all images except recently used ones, and those that hosts of a lab have mounted. */
export async function pruneImages(images: string, kept: number, nowMs: number): Promise<void> {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8");
  const byUse = readdirSync(images)
    .map((name) => join(images, name))
    .map((dir) => ({ dir, usedMs: statSync(dir).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { dir, usedMs } of byUse.slice(kept)) {
    if (usedMs > nowMs - IN_USE_MS || mounts.includes(`=${dir}/`)) continue;
    // A killed build may have left mounts.
    await unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}
