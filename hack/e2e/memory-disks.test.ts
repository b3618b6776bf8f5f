import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { listMounts, unmountBelow } from "../lib/mounts.ts";
import { run } from "../lib/run.ts";
import { onMemoryDisks, type TestPlaces } from "../tests/memory-disks.ts";

const GIB = 1024 ** 3;
const skip = process.getuid?.() === 0 ? undefined : "needs root";

function somePlaces(t: TestContext, availableBytes: number): TestPlaces {
  const dir = mkdtempSync(join(tmpdir(), "forage-memory-disks-"));
  t.after(async () => {
    await unmountBelow(dir);
    rmSync(dir, { recursive: true });
  });
  const temporary = join(dir, "tmp");
  mkdirSync(temporary);
  return { temporary, hosts: join(dir, "hosts"), availableBytes };
}

test("tests get both memory disks, which are removed also after a failure", { skip }, async (t) => {
  const { temporary, hosts, availableBytes } = somePlaces(t, 8 * GIB);
  const before = tmpdir();
  const failing = onMemoryDisks({ temporary, hosts, availableBytes }, assert.fail, async () => {
    assert.equal(tmpdir(), join(temporary, `ft-${process.pid}`));
    assert.deepEqual(mountedBelow(temporary, hosts), [tmpdir(), hosts]);
    const { stdout } = await run("df", ["--block-size=1", "--output=size", tmpdir(), hosts]);
    assert.deepEqual(stdout.split("\n").slice(1, 3), [`${2 * GIB}`, `${2 * GIB}`]);
    writeFileSync(join(tmpdir(), "left"), "by a test");
    throw new Error("a fault of the runner");
  });
  await assert.rejects(failing, /a fault of the runner/);
  assert.equal(tmpdir(), before);
  assert.deepEqual(mountedBelow(temporary, hosts), []);
  assert.deepEqual(readdirSync(temporary), []);
});

test("hosts that a killed test has left stay visible", { skip }, async (t) => {
  const places = somePlaces(t, 8 * GIB);
  mkdirSync(places.hosts);
  writeFileSync(join(places.hosts, "tabcdefg.json"), "{}");
  await onMemoryDisks(places, assert.fail, async () => {
    assert.deepEqual(readdirSync(places.hosts), ["tabcdefg.json"]);
  });
  assert.deepEqual(readdirSync(places.hosts), ["tabcdefg.json"]);
});

test("two runs share the disk of hosts, and the one that ends first leaves it", { skip }, async (t) => {
  const places = somePlaces(t, 8 * GIB);
  await onMemoryDisks(places, assert.fail, async () => {
    writeFileSync(join(places.hosts, "tabcdefg.json"), "{}");
    const other = join(places.temporary, "other");
    mkdirSync(other);
    await onMemoryDisks({ ...places, temporary: other }, assert.fail, async () => {
      assert.deepEqual(readdirSync(places.hosts), ["tabcdefg.json"]);
    });
    assert.deepEqual(readdirSync(places.hosts), ["tabcdefg.json"]);
    rmSync(join(places.hosts, "tabcdefg.json"));
  });
  assert.deepEqual(mountedBelow(places.temporary, places.hosts), []);
});

test("the disk of a killed run is removed, but not that of a living one or a directory that is no disk", {
  skip,
}, async (t) => {
  const places = somePlaces(t, 8 * GIB);
  mkdirSync(join(places.temporary, `ft-${2 ** 22 + 2}`, "of somebody else"), { recursive: true });
  // No process has an id above the kernel's limit.
  for (const pid of [1, 2 ** 22 + 1]) {
    const dir = join(places.temporary, `ft-${pid}`);
    mkdirSync(dir);
    await run("mount", ["-t", "tmpfs", "forage-test", dir]);
    writeFileSync(join(dir, "left"), "by a test");
  }
  await onMemoryDisks(places, assert.fail, async () => {});
  assert.deepEqual(readdirSync(places.temporary), ["ft-1", `ft-${2 ** 22 + 2}`]);
});

test("with little memory, or if nothing can be mounted, tests use the disk and the reason is reported", {
  skip,
}, async (t) => {
  const places = somePlaces(t, 8 * GIB - 1);
  const reports: string[] = [];
  const onDisk = async (): Promise<void> =>
    assert.deepEqual(mountedBelow(places.temporary, places.hosts), []);
  await onMemoryDisks(places, (detail) => reports.push(detail), onDisk);
  assert.deepEqual(reports, [
    "the tests' files are on the disk: memory disks need 8 GiB of available memory",
  ]);
  const before = process.env.PATH;
  writeFileSync(
    join(places.temporary, "mount"),
    "#!/bin/sh\necho 'mount: permission denied' >&2\nexit 32\n",
    { mode: 0o755 },
  );
  process.env.PATH = places.temporary;
  try {
    await onMemoryDisks({ ...places, availableBytes: 8 * GIB }, (detail) => reports.push(detail), onDisk);
  } finally {
    process.env.PATH = before;
  }
  const denied = "the tests' files are on the disk: mount: permission denied";
  assert.deepEqual(reports.slice(1), [denied, denied]);
  assert.deepEqual(readdirSync(places.temporary), ["mount"]);
});

function mountedBelow(...places: readonly string[]): readonly string[] {
  return listMounts().filter((path) => places.some((place) => path.startsWith(place)));
}
