import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startContainerd } from "../../hack/lib/containerd.ts";
import { run } from "../../hack/lib/run.ts";
import { NerdctlRuntime } from "../src/runtime/nerdctl/nerdctl-runtime.ts";
import { RuntimeError } from "../src/runtime/runtime.ts";
import { openNerdctl } from "./nerdctl-under-test.ts";
import { rejectsWith } from "./runtime-contract.ts";

/** Returns a host whose clean-up hooks run in reverse order before it is closed. */
async function aHost(t: TestContext) {
  const it = await openNerdctl();
  const ends: (() => Promise<unknown>)[] = [() => it.close()];
  t.after(async () => {
    for (const end of ends.reverse()) await end();
  });
  /** Mounts a separate file system. */
  const mount = async (name: string, options: string): Promise<string> => {
    const path = join(it.host.dir, name);
    mkdirSync(path);
    await run("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]);
    ends.push(() => run("umount", ["--lazy", path]));
    return path;
  };
  return { it, mount, atEnd: (end: () => Promise<unknown>) => ends.push(end) };
}

test("on a disk too small for an image, the pull gives the reason, is retryable, and works once there is room", async (t) => {
  const { signal } = t;
  const { it, mount, atEnd } = await aHost(t);
  const registry = await it.host.startRegistry();
  const image = await it.publish(registry, "forage/large:1");
  // The image takes 2 MB, compressed and unpacked; containerd's own databases take a few hundred kB.
  const dir = await mount("d", "size=3m");
  const containerd = await startContainerd({ dir });
  atEnd(() => containerd.stop());
  const runtime = new NerdctlRuntime({
    ...it.options,
    address: containerd.address,
    stateDir: join(it.host.dir, "runtime-d"),
  });
  atEnd(() => runtime.close());
  await assert.rejects(runtime.pull(image, signal), (error) => {
    assert.ok(error instanceof RuntimeError);
    assert.match(error.message, /no space left on device/);
    assert.equal(error.retryable, true);
    return true;
  });
  await run("mount", ["-o", "remount,size=64m", dir]);
  await runtime.pull(image, signal);
  assert.equal(await runtime.hasImage(image, signal), true);
});

test("on a full disk, a read-only disk or a missing directory, a log that can't be created leaves no remains, and the next start works", async (t) => {
  const { signal } = t;
  const { it, mount } = await aHost(t);
  const full = await mount("full", "size=64k,nr_inodes=2");
  writeFileSync(join(full, "the-last-inode"), "");
  const fixed = await mount("fixed", "size=64k,ro");
  for (const [dir, why] of [
    [full, /log file can't be opened: ENOSPC/],
    [fixed, /log file can't be opened: EROFS/],
    ["/no/such/directory", /log file can't be opened: ENOENT/],
  ] as const) {
    const spec = it.spec(["sleep", "1000"], { logFile: join(dir, "x.log") });
    const refused = it.runtime.run(spec, signal);
    await rejectsWith("START_FAILED", refused);
    await assert.rejects(refused, why);
    assert.deepEqual(await it.runtime.list(signal), []);
    const { id } = await it.runtime.run({ ...spec, logFile: join(it.logDir, "x.log") }, signal);
    await it.runtime.remove([id], signal);
  }
});
