import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { unmountBelow } from "../../hack/lib/mounts.ts";
import { run } from "../../hack/lib/run.ts";
import { LogRescue } from "../src/logs/log-rescue.ts";
import { openNerdctl } from "./nerdctl-under-test.ts";
import { until } from "./until.ts";

const LIMIT_MS = 120_000;

test("a container whose log met a full disk continues to write once there is room", async (t) => {
  const it = await openNerdctl();
  const dir = join(it.host.dir, "small");
  t.after(async () => {
    await unmountBelow(dir);
    await it.close();
  });
  await mkdir(dir);
  await run("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", dir]);
  const logFile = join(dir, "a.log");
  const filler = join(dir, "filler");
  writeFileSync(logFile, "");
  writeFileSync(filler, Buffer.alloc(3_000_000));
  const rescued: string[] = [];
  const rescue = new LogRescue({ procDir: "/proc", onRescue: (path) => rescued.push(path) });

  const loud = "while true; do seq 1 2000; sleep 0.05; done";
  const { id } = await it.runtime.run({ ...it.spec(["sh", "-c", loud]), logFile }, t.signal);
  const container = { containerId: id, logFile };
  await rescue.run([container]);
  assert.deepEqual(rescued, [], "its shim writes");

  await until("the disk is full", () => statfsSync(dir).bfree === 0, LIMIT_MS);
  await until("its shim has stopped writing", () => !shimWrites(id, logFile), LIMIT_MS);
  rmSync(filler);
  const before = statSync(logFile).size;
  await rescue.run([container]);
  assert.deepEqual(rescued, [logFile]);
  await until("the log grows", () => statSync(logFile).size > before, LIMIT_MS);
  await rescue.run([container, { containerId: "nobody", logFile: "/nowhere" }]);
  assert.deepEqual(rescued, [logFile], "someone writes");

  await it.runtime.stop(id, 0, t.signal);
  await it.runtime.remove([id], t.signal);
  await until("no process has the log open", () => writersOf(logFile).length === 0, LIMIT_MS);
});

function shimWrites(containerId: string, logFile: string): boolean {
  return writersOf(logFile).some((line) => line.includes("containerd-shim") && line.includes(containerId));
}

/** Returns the command lines of the processes that have the file open. */
function writersOf(path: string): string[] {
  const { dev, ino } = statSync(path);
  return readdirSync("/proc").flatMap((pid) => {
    try {
      const fds = /^\d+$/.test(pid) && Number(pid) !== process.pid ? readdirSync(`/proc/${pid}/fd`) : [];
      const open = fds.some((fd) => {
        const found = statSync(`/proc/${pid}/fd/${fd}`, { throwIfNoEntry: false });
        return found?.dev === dev && found.ino === ino;
      });
      return open ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : [];
    } catch {
      return [];
    }
  });
}
