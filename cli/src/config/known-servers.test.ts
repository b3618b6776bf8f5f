import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { KnownServers } from "./known-servers.ts";

test("stores reported coordinators for the configured addresses and authority", (t) => {
  const { open, later } = setUp(t);
  const known = open({ server: "a:1" });
  assert.deepEqual([known.without(["a:1"]), known.isOld], [[], true]);
  known.save(["a:1", "b:2", "not an address", "b:2", "[2001:db8::1]:3"]);
  assert.deepEqual(open({ server: "a:1" }).without(["a:1"]), ["b:2", "[2001:db8::1]:3"]);
  assert.equal(open({ server: "a:1" }).isOld, false);
  assert.deepEqual(open({ server: "x:1" }).without([]), []);
  assert.deepEqual(open({ server: "a:1", caPem: "another" }).without([]), [], "another authority");
  later(3_600_001);
  assert.equal(open({ server: "a:1" }).isOld, true);
});

test("sends no further request for an hour with a token that may not list coordinators", (t) => {
  const { open, later } = setUp(t);
  open({ server: "a:1" }).save(["b:2"]);
  later(3_600_001);
  open({ server: "a:1" }).deny();
  const isOld = (token?: string): boolean => open({ server: "a:1", ...(token && { token }) }).isOld;
  assert.deepEqual([isOld(), isOld("another")], [false, true]);
  assert.deepEqual(open({ server: "a:1" }).without([]), ["b:2"], "what it knows stays");
  later(3_600_001);
  assert.equal(isOld(), true);
  open({ server: "x:1" }).deny();
  assert.equal(open({ server: "x:1" }).isOld, false, "also without known ones");
});

test("creates no home directory", (t) => {
  const { home, open } = setUp(t);
  rmSync(home, { recursive: true });
  open({ server: "a:1" }).save(["b:2"]);
  assert.equal(existsSync(home), false);
});

test("stores a limited number of addresses and clusters", (t) => {
  const { open, later } = setUp(t);
  for (let at = 0; at < 40; at++) {
    later(1);
    open({ server: `s${at}:1` }).save(Array.from({ length: 40 }, (_, n) => `h${n}:1`));
  }
  assert.equal(open({ server: "s39:1" }).without([]).length, 16);
  assert.equal(open({ server: "s39:1" }).without(["s39:1"]).length, 15);
  assert.deepEqual(open({ server: "s0:1" }).without([]), []);
});

test("ignores a damaged file", (t) => {
  const { home, open } = setUp(t);
  mkdirSync(join(home, ".cache/forage"), { recursive: true });
  for (const text of ["", "{", "[]", "null", '{"k":{"servers":["--x"],"atMs":1}}', '{"k":1}']) {
    writeFileSync(join(home, ".cache/forage/coordinators.json"), text);
    assert.deepEqual(open({ server: "a:1" }).without([]), []);
  }
  open({ server: "a:1" }).save(["b:2"]);
  assert.deepEqual(open({ server: "a:1" }).without([]), ["b:2"]);
});

function setUp(t: TestContext) {
  const home = mkdtempSync(join(tmpdir(), "forage-known-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  let nowMs = 1_000;
  let ids = 0;
  const world = { env: {}, homeDir: home, nowMs: () => nowMs, randomId: () => String(++ids) };
  const about = { otherServers: [], caFile: "/ca", caPem: "CA", token: "t", tokenSource: "/t" };
  return {
    home,
    open: (endpoint: { server: string; caPem?: string; token?: string }) =>
      new KnownServers({ ...about, ...endpoint }, world),
    later: (ms: number) => {
      nowMs += ms;
    },
  };
}
