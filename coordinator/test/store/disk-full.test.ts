import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { tempDir } from "./sample-store.ts";

const SCENARIO = new URL("disk-full-scenario.ts", import.meta.url).pathname;

test("becomes read-only on a full disk, loses nothing, and recovers when there is space", async (t) => {
  if (process.getuid?.() !== 0) return t.skip("mounting a small file system takes root");
  const dir = tempDir(t);
  // The mount disappears with its namespace, however the process ends.
  const script = 'mount -t tmpfs -o size=48m none "$1" && exec "$2" "$3" "$1"';
  await promisify(execFile)(
    "unshare",
    ["--mount", "sh", "-c", script, "sh", dir, process.execPath, SCENARIO],
    {
      timeout: 60_000,
    },
  );
});
