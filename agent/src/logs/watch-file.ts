import { watch } from "node:fs";

/** Calls `changed` after each write. Undefined if it can't be watched. The returned function ends it. */
export function watchFile(path: string, changed: () => void): (() => void) | undefined {
  try {
    const watcher = watch(path, { persistent: false }, changed);
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  } catch {
    return undefined;
  }
}
