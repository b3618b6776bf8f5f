import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { ReportRequest } from "@forage/proto/forage/coordinator/v1/coordinator";
import { toEpochMs } from "../model/timestamp.ts";
import type { StoreHealth } from "../store/index.ts";
import { CoordinatorTable } from "./coordinator-table.ts";

test("lists the leader first, and each follower with the number of unread revisions", () => {
  const { table, clock } = aTable();
  const sinceMs = clock.nowMs();
  clock.advance(5_000);
  table.report(aReport("c3", { revision: 40n }), coordinator("id-3"));
  table.report(aReport("c2", { revision: 42n, behindMs: 300n }), coordinator("id-2"));
  clock.advance(2_000);
  const [leader, ...followers] = table.list();
  assert.deepEqual([leader?.name, leader?.leads, toEpochMs(leader?.leadsSince)], ["c1", true, sinceMs]);
  assert.deepEqual(
    followers.map(({ name, leads, ready, revisionsBehind }) => [name, leads, ready, revisionsBehind]),
    [
      ["c2", false, true, 0n],
      ["c3", false, true, 2n],
    ],
  );
  assert.equal(toEpochMs(followers[0]?.lastSeenAt), clock.nowMs() - 2_000);
  table.report(aReport("c3", { revision: 42n }), coordinator("id-3"));
  assert.equal(table.list()[2]?.revisionsBehind, 0n, "the newest report counts");
});

test("shows a follower that is silent or does not read the store as not ready, and removes it after an hour", () => {
  const { table, clock } = aTable();
  table.report(aReport("c2"), coordinator("id-2"));
  table.report(aReport("c3", { behindMs: 6_000n }), coordinator("id-3"));
  assert.match(table.list()[2]?.message ?? "", /has not read the store for 6 s/);
  clock.advance(11_000);
  const [, silent] = table.list();
  assert.deepEqual([silent?.ready, silent?.message], [false, "it has not reported for 11 s"]);
  clock.advance(3_600_000);
  assert.equal(table.list().length, 1);
});

test("gives a new host one address of each coordinator, the leader's first", () => {
  const { table, clock } = aTable();
  assert.deepEqual(table.preferred(), []);
  const both = { addresses: ["192.0.2.2:7600", "[2001:db8::2]:7600"] };
  table.report(aReport("c2", both), coordinator("id-2"));
  assert.deepEqual(table.preferred(), [table.list()[0]?.addresses[0], "192.0.2.2:7600"]);
  for (let at = 3; at < 15; at++)
    table.report(aReport(`c${at}`, { addresses: [`192.0.2.${at}:7600`] }), coordinator(`id-${at}`));
  assert.equal(table.preferred().length, 9);
  clock.advance(600_001);
  assert.deepEqual(table.preferred(), []);
});

test("accepts a follower with a wrong clock, and reports it in the list", () => {
  const { table, clock } = aTable();
  for (const [name, offMs] of [
    ["c2", 3_600_000],
    ["c3", -3_600_000],
    ["c4", 10_000],
  ] as const)
    table.report(aReport(name, { clockMs: BigInt(clock.nowMs() + offMs) }), coordinator(`id-${name}`));
  assert.deepEqual(
    table.list().map(({ ready, message }) => [ready, message.split(":")[0]]),
    [
      [true, ""],
      [true, "its clock is 3600 s ahead of the leader's"],
      [true, "its clock is 3600 s behind the leader's"],
      [true, ""],
    ],
  );
});

test("shows the leader as not ready while the store accepts no writes", () => {
  const { table, setHealth } = aTable();
  setHealth({ status: "read-only", reason: "unavailable", message: "etcd does not answer" });
  const [leader] = table.list();
  assert.deepEqual([leader?.ready, leader?.message], [false, "etcd does not answer"]);
});

test("accepts reports of coordinators only, and a limited number and size", () => {
  const { table } = aTable();
  for (const caller of [{ type: "anonymous" }, { type: "user", name: "u", grants: [] }] as const)
    assert.throws(() => table.report(aReport("c2"), caller), { code: "PERMISSION_DENIED" });
  for (const report of [
    aReport(""),
    aReport("c".repeat(301)),
    aReport("c2", { addresses: ["a".repeat(301)] }),
  ])
    assert.throws(() => table.report(report, coordinator("id-2")), { code: "INVALID" });
  for (let at = 10; at < 40; at++) table.report(aReport(`c${at}`), coordinator(`id-${at}`));
  assert.equal(table.list().length, 17);
  assert.equal(table.list()[1]?.name, "c24", "those that have been silent for the longest time are dropped");
});

test("sends agents the addresses of all coordinators after these have had time to report, and each change", () => {
  const { table, clock } = aTable();
  let changes = 0;
  const stop = table.onAddresses(() => changes++);
  const reports = (...names: string[]): void => {
    for (const name of names) table.report(aReport(name), coordinator(`id-${name}`));
  };
  reports("c2", "c3");
  assert.deepEqual([table.addresses(), changes], [undefined, 0]);
  clock.advance(11_000);
  reports("c3", "c2");
  assert.deepEqual([table.addresses(), changes], [["10.0.0.1:7600", "c2:7600", "c3:7600"], 1]);
  reports("c2", "c3");
  assert.equal(changes, 1, "the order is no change");
  assert.deepEqual(table.addresses(), ["10.0.0.1:7600", "c2:7600", "c3:7600"]);
  clock.advance(601_000);
  reports("c2");
  assert.deepEqual([table.addresses(), changes], [["10.0.0.1:7600", "c2:7600"], 2]);
  clock.advance(601_000);
  assert.equal(table.addresses(), undefined, "there are no others");
  stop();
  reports("c3");
  assert.equal(changes, 2);
});

test("changes no list after alternating reports, regardless of the number of addresses", () => {
  const { table, clock } = aTable();
  let changes = 0;
  const stop = table.onAddresses(() => changes++);
  const report = (name: string): void => {
    const addresses = Array.from({ length: 12 }, (_, i) => `${name}-${i}:7600`);
    table.report({ ...aReport(name), addresses }, coordinator(`id-${name}`));
  };
  clock.advance(11_000);
  for (const name of ["c2", "c3", "c2", "c3", "c2"]) report(name);
  // There are two changes: the first report, and the second coordinator.
  assert.equal(changes, 2);
  stop();
});

test("waits until all reporting coordinators trust an authority, and names the others", async () => {
  const { table, clock } = aTable();
  const report = (name: string, ...authorityPins: string[]): void =>
    void table.report(aReport(name, { authorityPins }), coordinator(`id-${name}`));
  report("silent", "old");
  clock.advance(11_000);
  report("c2", "old", "new");
  report("c3", "old");
  let isTrusted = false;
  const trusted = table.untilTrusted(["old", "new"]).then(() => {
    isTrusted = true;
  });
  await clock.run(2_000);
  assert.equal(isTrusted, false);
  report("c3", "old", "new");
  await clock.run(200);
  await trusted;
  report("c2", "old");
  const refused = assert.rejects(table.untilTrusted(["old", "new"]), {
    code: "FAILED_PRECONDITION",
    message: /do not trust the new authority yet: c2;/,
  });
  for (let at = 0; at < 6; at++) {
    await clock.run(2_000);
    report("c2", "old");
  }
  await refused;
});

function aTable() {
  const clock = new VirtualClock();
  let health: StoreHealth = { status: "ok" };
  const store = { revision: 42, health: () => health };
  const table = new CoordinatorTable({
    own: { name: "c1", addresses: ["10.0.0.1:7600"] },
    ...{ store, clock, decides: () => true },
  });
  const setHealth = (next: StoreHealth): void => {
    health = next;
  };
  return { table, clock, setHealth };
}

function aReport(name: string, fields: Partial<ReportRequest> = {}): ReportRequest {
  const lists = { addresses: [`${name}:7600`], usedTokenIds: [], authorityPins: [] };
  return { ...lists, name, revision: 42n, behindMs: 0n, clockMs: 0n, ...fields };
}

function coordinator(id: string) {
  return { type: "anonymous", forwarded: true, coordinator: id } as const;
}
