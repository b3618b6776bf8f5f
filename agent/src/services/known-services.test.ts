import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { systemClock } from "../clock.ts";
import { KnownServices } from "./known-services.ts";

type Update = Parameters<typeof ServiceUpdate.fromPartial>[0];

test("applies a full update and then changes, and counts several parts as one update", async (t) => {
  const { services, notified, apply } = await open(t);
  apply({ full: true, upserts: [named("a"), named("b")] });
  assert.deepEqual(notified(), ["shop/a", "shop/b"]);
  apply({ upserts: [named("b", { virtualIps: ["10.96.0.9"] }), named("a")] });
  assert.deepEqual(notified(), ["shop/b"], "what is as it was is no news");
  apply({ upserts: [named("c")], more: true });
  assert.deepEqual(notified(), []);
  apply({ removals: [{ namespace: "shop", name: "a" }] });
  assert.deepEqual(notified(), ["shop/a", "shop/c"]);
  apply({ full: true, upserts: [named("c")], more: true });
  apply({ upserts: [named("d")] });
  assert.deepEqual(notified(), ["shop/b", "shop/d"]);
  assert.deepEqual([...services.services.keys()].sort(), ["shop/c", "shop/d"]);
});

test("a new cluster domain affects all services", async (t) => {
  const { notified, apply } = await open(t);
  apply({ full: true, upserts: [named("a"), named("b")], clusterDomain: "one.site" });
  assert.deepEqual(notified(), ["shop/a", "shop/b"]);
  apply({ full: true, upserts: [named("a"), named("b")], clusterDomain: "two.site" });
  assert.deepEqual(notified(), ["shop/a", "shop/b"]);
});

test("discards an update that a broken connection interrupted", async (t) => {
  const { services, apply, notified } = await open(t);
  apply({ full: true, upserts: [named("a")] });
  apply({ full: true, upserts: [named("b")], more: true });
  services.restart();
  apply({ upserts: [named("c")] });
  assert.deepEqual([...services.services.keys()].sort(), ["shop/a", "shop/c"]);
  assert.deepEqual(notified(), ["shop/a", "shop/c"]);
});

test("restores the services after a restart", async (t) => {
  const { services, apply, dir } = await open(t);
  apply({
    full: true,
    upserts: [named("a", { virtualIps: ["10.96.0.5"] })],
    clusterDomain: "my.site",
    virtualIpRanges: ["10.96.0.0/16"],
  });
  await services.close();
  const again = await open(t, dir);
  assert.deepEqual(again.services.services.get("shop/a")?.virtualIps, ["10.96.0.5"]);
  assert.equal(again.services.clusterDomain, "my.site");
  assert.deepEqual(again.services.virtualIpRanges, ["10.96.0.0/16"]);
});

test("detects any damage of the file, until the coordinator has sent everything", async (t) => {
  const { services, apply, dir } = await open(t);
  apply({ full: true, upserts: [named("a", { virtualIps: ["10.96.0.5"] })], clusterDomain: "my.site" });
  await services.close();
  const path = join(dir, "services.bin");
  const sound = await readFile(path);
  const damageReports = [
    Buffer.alloc(0),
    Buffer.from([255, 255, 255, 1, 2]),
    sound.subarray(0, -1),
    ...Array.from(sound, (byte, at) => sound.with(at, byte ^ 1)),
    ...Array.from(sound, (byte, at) => sound.with(at, byte ^ 2)),
  ];
  for (const [index, bytes] of damageReports.entries()) {
    await writeFile(path, bytes);
    const damaged = await open(t, dir);
    assert.equal(damaged.services.services.size, 0);
    assert.equal(damaged.services.loaded, "damaged", `damage ${index}`);
    assert.deepEqual(damaged.damageReports, [path]);
    damaged.apply({ upserts: [named("b")] });
    assert.equal(damaged.services.loaded, "damaged");
    damaged.apply({ full: true });
    assert.equal(damaged.services.loaded, "sound");
    // Its write must not follow the next damage.
    await damaged.services.close();
  }
});

test("reads a file of an older agent, without a checksum", async (t) => {
  const { dir } = await open(t);
  const older = ServiceUpdate.fromPartial({ full: true, upserts: [named("a")], clusterDomain: "my.site" });
  await writeFile(join(dir, "services.bin"), ServiceUpdate.encode(older).finish());
  const { services, damageReports } = await open(t, dir);
  assert.deepEqual([...services.services.keys()], ["shop/a"]);
  assert.deepEqual(damageReports, []);
});

async function open(t: TestContext, at?: string) {
  const dir = at ?? (await mkdtemp(join(tmpdir(), "forage-services-")));
  const errors: unknown[] = [];
  const damageReports: string[] = [];
  const services = await KnownServices.open({
    dir,
    clock: systemClock,
    onError: (error) => errors.push(error),
    onDamage: (path) => damageReports.push(path),
  });
  t.after(async () => {
    await services.close();
    if (at === undefined) await rm(dir, { recursive: true });
  });
  const changed: string[] = [];
  services.subscribe((keys) => changed.push(...keys));
  const apply = (update: Update): void => services.apply(ServiceUpdate.fromPartial(update));
  return { dir, services, errors, damageReports, apply, notified: () => changed.splice(0).sort() };
}

function named(name: string, fields: object = {}) {
  return { namespace: "shop", name, ...fields };
}
