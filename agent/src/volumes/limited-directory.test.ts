import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type LimitedDirectory, makeLimitedDirectory } from "./limited-directory.ts";
import { type MountRequest, Mounts } from "./mounts.ts";
import { ChildRunner } from "./run-child.ts";

const MEBIBYTE = 1024 * 1024;
const signal = AbortSignal.timeout(60_000);

test("enforces a limit with an image, which it mounts once", async (t) => {
  const { make, directory, mounted } = aHost(t);
  const ready = { path: directory.mountPoint, isEnforced: true };
  assert.deepEqual(await make({ limitBytes: MEBIBYTE }), ready);
  assert.ok(statSync(`${directory.home}.img`).size >= MEBIBYTE);
  assert.deepEqual(mounted, [directory.mountPoint]);
  assert.deepEqual(await make({ limitBytes: MEBIBYTE }), ready);
  assert.deepEqual(mounted, [directory.mountPoint]);
});

test("keeps an image that has no limit any more", async (t) => {
  const { make, directory, mounted } = aHost(t);
  writeFileSync(`${directory.home}.img`, "content");
  assert.deepEqual(await make({}), { path: directory.mountPoint, isEnforced: true });
  assert.equal(readFileSync(`${directory.home}.img`, "utf8"), "content");
  assert.deepEqual(mounted, [directory.mountPoint]);
});

test("replaces a scratch image beyond repair by an empty one, and reports it", async (t) => {
  const { make, directory, mounted, warned } = aHost(t, { damaged: "content" });
  writeFileSync(`${directory.home}.img`, "content");
  assert.deepEqual(await make({ limitBytes: MEBIBYTE }), { path: directory.mountPoint, isEnforced: true });
  assert.ok(statSync(`${directory.home}.img`).size >= MEBIBYTE);
  assert.deepEqual(mounted, [directory.mountPoint]);
  assert.deepEqual(warned, ["scratch-volume-made-anew"]);
});

test("measures the use of a directory with a limit where loop devices don't work", async (t) => {
  const { make, directory, mounted } = aHost(t, { imagesWork: false });
  assert.deepEqual(await make({ limitBytes: MEBIBYTE }), { path: directory.home, isEnforced: false });
  assert.equal(statSync(directory.home).mode & 0o777, 0o777);
  assert.deepEqual(mounted, []);
});

test("keeps a directory that gets a limit later, and measures its use", async (t) => {
  const { make, directory } = aHost(t);
  assert.deepEqual(await make({}), { path: directory.home, isEnforced: true });
  writeFileSync(join(directory.home, "file"), "");
  assert.deepEqual(await make({ limitBytes: MEBIBYTE }), { path: directory.home, isEnforced: false });
  assert.ok(existsSync(join(directory.home, "file")));
});

/** Returns a directory on a host whose file system tools do nothing. An image with the `damaged` content fails its check. */
function aHost(t: TestContext, { imagesWork = true, damaged = "none" } = {}) {
  const root = mkdtempSync(join(tmpdir(), "forage-limited-"));
  t.after(() => rmSync(root, { recursive: true }));
  const children = new (class extends ChildRunner {
    override async run(program: string, args: readonly string[]) {
      const isDamaged = program === "e2fsck" && readFileSync(args.at(-1) ?? "", "utf8") === damaged;
      return { exitCode: isDamaged ? 8 : 0, stdout: "/dev/loop4000\n", stderr: "" };
    }
  })();
  const mounted: string[] = [];
  const mounts = new (class extends Mounts {
    override async mount({ target }: MountRequest) {
      mounted.push(target);
    }

    override async isMounted(path: string) {
      return mounted.includes(path);
    }
  })(children);
  const warned: string[] = [];
  const options = {
    ...{ children, mounts, warn: (event: string) => void warned.push(event) },
    imagesWork: async () => imagesWork,
  };
  const directory = { home: join(root, "home"), mountPoint: join(root, "mounts/home") };
  const make = ({ limitBytes }: Partial<LimitedDirectory>) =>
    makeLimitedDirectory({ ...directory, kind: "scratch", limitBytes }, options, signal);
  return { make, directory, mounted, warned };
}
