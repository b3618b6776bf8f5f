import { watch } from "node:fs";

/**
 * Calls `changed` after each write. Returns a function that stops the watch, or undefined if the file can't be watched.
 */
export function watchFile(path: string, changed: () => void): (() => void) | undefined {
  try {
    const watcher = watch(path, { persistent: false }, changed);
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  } catch {
    return undefined;
  }
}
