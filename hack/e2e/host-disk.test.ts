import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { attachDisk, removeDisks } from "../lab-hosts/host-disk.ts";
import { planHosts } from "../lab-hosts/lab-plan.ts";
import { listMounts, unmountBelow } from "../lib/mounts.ts";

const [HOST] = planHosts({ count: 1, coordinatorOwnHost: false, gateway: "10.0.0.1" });
assert.ok(HOST);

function makeDirs(t: TestContext): { readonly dir: string; readonly image: string } {
  const parent = mkdtempSync(join(tmpdir(), "forage-disk-"));
  const [dir, image] = [join(parent, "h1"), join(parent, "image")];
  mkdirSync(join(image, "etc"), { recursive: true });
  t.after(async () => {
    await unmountBelow(parent);
    rmSync(parent, { recursive: true });
  });
  return { dir, image };
}

const mountsIn = (dir: string): readonly string[] => listMounts().filter((path) => path.startsWith(dir));

test("a disk is not mounted after its image could not be, and can be attached later", async (t) => {
  const { dir, image } = makeDirs(t);
  await assert.rejects(attachDisk(dir, `${image}-missing`, HOST), { code: "COMMAND_FAILED" });
  assert.deepEqual(mountsIn(dir), []);
  const { root } = await attachDisk(dir, image, HOST);
  assert.equal(readFileSync(join(root, "etc/hostname"), "utf8"), "h1\n");
  assert.deepEqual(mountsIn(dir), [join(dir, "base"), root]);
  await removeDisks(dir);
  assert.deepEqual([mountsIn(dir), existsSync(dir)], [[], false]);
});

test("a disk is not mounted after its host could not be named, and the host is named later", async (t) => {
  const { dir, image } = makeDirs(t);
  writeFileSync(join(image, "etc/systemd"), "a file where a directory is needed");
  await assert.rejects(attachDisk(dir, image, HOST));
  assert.deepEqual(mountsIn(dir), []);
  rmSync(join(image, "etc/systemd"));
  const { root } = await attachDisk(dir, image, HOST);
  assert.match(readFileSync(join(root, "etc/systemd/network/10-lab.network"), "utf8"), /Address=/);
});

test("a disk that a killed boot has left mounted is mounted once", async (t) => {
  const { dir, image } = makeDirs(t);
  const { root } = await attachDisk(dir, image, HOST);
  await unmountBelow(root);
  assert.deepEqual(mountsIn(dir), [join(dir, "base")]);
  await attachDisk(dir, image, HOST);
  assert.deepEqual(mountsIn(dir), [join(dir, "base"), root]);
});
