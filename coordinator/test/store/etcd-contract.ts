import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Etcd, EtcdOp, EtcdTxn } from "../../src/store/etcd/etcd.ts";
import { EtcdError, type EtcdErrorCode } from "../../src/store/etcd/etcd-error.ts";

const TEST_LIMIT_MS = 60_000;
/** etcd's own limit (--max-txn-ops). */
const OPS_MAX = 128;
/** A time to live below the shortest one that etcd grants. */
const SHORT_TTL_S = 1;
const LONG_TTL_S = 600;

export interface EtcdUnderTest {
  /** A client without any keys. Others may use the same cluster. */
  readonly etcd: Etcd;
  /** Waits a little. */
  readonly pause: () => Promise<void>;
}

/**
 * Declares the tests of the port to etcd, for the real one through its client and for the simulated
 * one.
 */
export function testEtcd(name: string, open: (t: TestContext) => Promise<EtcdUnderTest>): void {
  const check = (what: string, run: (under: EtcdUnderTest) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: TEST_LIMIT_MS }, async (t) => {
      const under = await open(t);
      t.after(() => under.etcd.close());
      await run(under);
    });
  reads(check);
  transactions(check);
  leases(check);
  watches(check);
}

type Check = (what: string, run: (under: EtcdUnderTest) => Promise<void>) => void;

function reads(check: Check): void {
  check("a range reads keys in order, without the one at its end", async ({ etcd }) => {
    await write(etcd, put("b"), put("a"), put("c"), put("d"));
    assert.deepEqual(await keysOf(etcd, { from: "a", to: "d" }), ["a", "b", "c"]);
    assert.deepEqual(await keysOf(etcd, { from: "b" }), ["b"]);
    assert.deepEqual(await keysOf(etcd, { from: "aa" }), []);
  });

  check("a limited range reports whether there is more", async ({ etcd }) => {
    await write(etcd, put("a"), put("b"));
    const page = await etcd.range({ from: "a", to: "z", limit: 1 });
    assert.deepEqual([page.records.map(({ key }) => key), page.more], [["a"], true]);
    assert.equal((await etcd.range({ from: "a", to: "z", limit: 2 })).more, false);
  });

  check("a range at a revision reads what was there then, until that is compacted", async ({ etcd }) => {
    const first = await write(etcd, put("a", "1"));
    const second = await write(etcd, put("a", "2"), put("b"));
    assert.deepEqual(await contents(etcd, first), { a: "1" });
    await write(etcd, { type: "delete", from: "a" });
    assert.deepEqual(await contents(etcd, second), { a: "2", b: "b" });
    await etcd.compact(second);
    assert.deepEqual(await contents(etcd, second), { a: "2", b: "b" });
    assert.deepEqual(await contents(etcd), { b: "b" });
    await rejectsWith("COMPACTED", etcd.range({ from: "a", at: first }));
    await rejectsWith("COMPACTED", etcd.compact(first));
  });

  check("each endpoint describes itself", async ({ etcd }) => {
    const [member, ...others] = await etcd.members();
    assert.deepEqual(others, []);
    assert.ok(member?.type === "up");
    assert.match(member.version, /^3\.\d+\.\d+$/);
    assert.notEqual(member.clusterId, 0n);
  });
}

function transactions(check: Check): void {
  check("a transaction writes all of its keys at one revision", async ({ etcd }) => {
    const first = await write(etcd, put("a"), put("b"));
    const second = await write(etcd, put("a"));
    const { records, revision } = await etcd.range({ from: "a", to: "z" });
    assert.deepEqual(
      records.map(({ key, createRevision, modRevision }) => [key, createRevision, modRevision]),
      [
        ["a", first, second],
        ["b", first, first],
      ],
    );
    assert.equal(revision, second);
  });

  check("a transaction of which one compare fails changes nothing and reads other keys", async ({ etcd }) => {
    const first = await write(etcd, put("a"));
    const txn: EtcdTxn = {
      compares: [
        { type: "mod-revision", key: "a", revision: first },
        { type: "create-revision", key: "b", revision: first },
      ],
      ops: [put("a", "2")],
      otherwise: ["b", "a"],
    };
    const { succeeded, found, revision } = await etcd.txn(txn);
    assert.deepEqual([succeeded, revision], [false, first]);
    assert.deepEqual(
      found.map((record) => record?.value.toString()),
      [undefined, "a"],
    );
    assert.deepEqual(await contents(etcd), { a: "a" });
  });

  check("an absent key has the revisions 0, also after it was deleted", async ({ etcd }) => {
    const create: EtcdTxn = {
      compares: [
        { type: "create-revision", key: "a", revision: 0n },
        { type: "mod-revision", key: "a", revision: 0n },
      ],
      ops: [put("a")],
    };
    assert.equal((await etcd.txn(create)).succeeded, true);
    assert.equal((await etcd.txn(create)).succeeded, false);
    await write(etcd, { type: "delete", from: "a" });
    const { succeeded, revision } = await etcd.txn(create);
    assert.equal(succeeded, true);
    assert.equal((await etcd.range({ from: "a" })).records[0]?.createRevision, revision);
  });

  check("a deletion takes a range of keys, and one of nothing moves no revision", async ({ etcd }) => {
    await write(etcd, put("a"), put("b"), put("c"));
    const deleted = await write(etcd, { type: "delete", from: "a", to: "c" });
    assert.deepEqual(await contents(etcd), { c: "c" });
    assert.equal(await write(etcd, { type: "delete", from: "a", to: "c" }), deleted);
  });

  check("refuses a transaction that writes a key twice", async ({ etcd }) => {
    await rejectsWith("REJECTED", write(etcd, put("a", "1"), put("a", "2")));
    await rejectsWith("REJECTED", write(etcd, put("b"), { type: "delete", from: "a", to: "c" }));
    assert.deepEqual(await contents(etcd), {});
  });

  check("refuses a transaction of too many operations", async ({ etcd }) => {
    const ops = Array.from({ length: OPS_MAX + 1 }, (_, at) => put(`k${at}`));
    await rejectsWith("REJECTED", write(etcd, ...ops));
    await write(etcd, ...ops.slice(1));
  });
}

function leases(check: Check): void {
  check("keys of a revoked lease vanish at one revision", async ({ etcd }) => {
    const lease = await etcd.grantLease(LONG_TTL_S);
    const before = await write(etcd, put("a", "a", lease), put("b", "b", lease), put("c"));
    assert.equal(await etcd.keepLeaseAlive(lease), true);
    await etcd.revokeLease(lease);
    assert.deepEqual(await contents(etcd), { c: "c" });
    assert.equal((await etcd.range({ from: "c" })).revision, before + 1n);
    assert.equal(await etcd.keepLeaseAlive(lease), false);
    await etcd.revokeLease(lease);
  });

  check("keys of a lease that is not kept alive vanish", async ({ etcd, pause }) => {
    const lease = await etcd.grantLease(SHORT_TTL_S);
    await write(etcd, put("a", "a", lease), put("b"));
    while ("a" in (await contents(etcd))) await pause();
    assert.deepEqual(await contents(etcd), { b: "b" });
    assert.equal(await etcd.keepLeaseAlive(lease), false);
  });

  check("the last put says which lease a key is under", async ({ etcd }) => {
    const [one, two] = [await etcd.grantLease(LONG_TTL_S), await etcd.grantLease(LONG_TTL_S)];
    await write(etcd, put("freed", "", one), put("moved", "", one), put("kept", "", one));
    await write(etcd, put("freed", ""), put("moved", "", two));
    await etcd.revokeLease(one);
    assert.deepEqual(await contents(etcd), { freed: "", moved: "" });
    await etcd.revokeLease(two);
    assert.deepEqual(await contents(etcd), { freed: "" });
  });

  check("refuses a transaction under a lease that has ended", async ({ etcd }) => {
    const lease = await etcd.grantLease(LONG_TTL_S);
    await etcd.revokeLease(lease);
    await rejectsWith("REJECTED", write(etcd, put("a"), put("b", "b", lease)));
    assert.deepEqual(await contents(etcd), {});
  });
}

function watches(check: Check): void {
  check("a change after the revision is reported at once", async ({ etcd }) => {
    const first = await write(etcd, put("a"));
    await write(etcd, put("a"));
    await etcd.changed("a", first, new AbortController().signal);
  });

  check("a change is reported when it happens, and those of other keys are not", async ({ etcd, pause }) => {
    const lease = await etcd.grantLease(LONG_TTL_S);
    const revision = await write(etcd, put("a"), put("b", "b", lease));
    const reported = new Set<string>();
    const watch = (key: string) =>
      etcd.changed(key, revision, new AbortController().signal).then(() => reported.add(key));
    const [a, b] = [watch("a"), watch("b")];
    await pause();
    assert.deepEqual([...reported], []);
    await write(etcd, put("a"), put("ab"));
    await a;
    assert.deepEqual([...reported], ["a"]);
    await etcd.revokeLease(lease);
    await b;
  });

  check("an aborted watch ends", async ({ etcd }) => {
    const revision = await write(etcd, put("a"));
    const watch = new AbortController();
    const ended = etcd.changed("a", revision, watch.signal);
    watch.abort();
    await ended;
  });
}

function put(key: string, value = key, lease?: bigint): EtcdOp {
  return { type: "put", key, value: Buffer.from(value), ...(lease !== undefined && { lease }) };
}

async function write(etcd: Etcd, ...ops: readonly EtcdOp[]): Promise<bigint> {
  const { succeeded, revision } = await etcd.txn({ compares: [], ops });
  assert.equal(succeeded, true);
  return revision;
}

async function keysOf(etcd: Etcd, query: { from: string; to?: string }): Promise<string[]> {
  return (await etcd.range(query)).records.map(({ key }) => key);
}

async function contents(etcd: Etcd, at?: bigint): Promise<Record<string, string>> {
  const { records } = await etcd.range({ from: "a", to: "z", ...(at !== undefined && { at }) });
  return Object.fromEntries(records.map(({ key, value }) => [key, value.toString()]));
}

async function rejectsWith(code: EtcdErrorCode, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => error instanceof EtcdError && error.code === code);
}
