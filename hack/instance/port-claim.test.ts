import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { claimPorts, releasePorts } from "./port-claim.ts";

test("each instance gets its own range, and a released one is assigned again", async (t) => {
  const dir = aDirectory(t);
  const one = await claimPorts({ id: "dinstone", dataDir: "/absent/1" }, dir);
  const two = await claimPorts({ id: "dinsttwo", dataDir: "/absent/2" }, dir);
  assert.ok(two.first > one.last);
  assert.equal(one.last - one.first, 499);

  releasePorts("dinstone", dir);
  assert.deepEqual(await claimPorts({ id: "dinstnew", dataDir: "/absent/3" }, dir), one);
  for (const id of ["dinstnew", "dinsttwo"]) releasePorts(id, dir);
  assert.equal(existsSync(dir), false);
});

test("a claim of a process that died before its instance existed is taken over, but not one of an instance", async (t) => {
  const dir = aDirectory(t);
  const dataDir = aDirectory(t);
  const first = await claimPorts({ id: "dinstone", dataDir }, dir);
  const path = join(dir, String(first.first));
  const claim = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify({ ...claim, by: { ...claim.by, bootId: "another" } }));

  writeFileSync(join(dataDir, "instance.json"), JSON.stringify({ id: "dinstone" }));
  const other = await claimPorts({ id: "dinsttwo", dataDir: "/absent" }, dir);
  assert.notEqual(other.first, first.first);
  rmSync(join(dataDir, "instance.json"));
  assert.deepEqual(await claimPorts({ id: "dinstthr", dataDir: "/absent" }, dir), first);
});

test("a range is skipped if its first port is in use", async (t) => {
  const dir = aDirectory(t);
  const free = await claimPorts({ id: "dinstone", dataDir: "/absent" }, dir);
  releasePorts("dinstone", dir);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(free.first, "127.0.0.1", resolve));
  t.after(() => void server.close());

  assert.notEqual((await claimPorts({ id: "dinsttwo", dataDir: "/absent" }, dir)).first, free.first);
});

function aDirectory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-claims-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
