import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAddress, parseDownFlags, parseUpFlags } from "./flags.ts";

test("without flags everything has its default", () => {
  assert.deepEqual(parseUpFlags([], "/home"), {
    ...{ dataDir: "/var/lib/forage-dev", example: true, workspaces: false, json: false },
  });
  assert.equal(parseUpFlags(["--workspaces"], "/home").workspaces, true);
});

test("relative paths are relative to the user's directory", () => {
  assert.equal(parseDownFlags(["--data", "x"], "/home").dataDir, "/home/x");
  assert.equal(parseUpFlags(["--containerd", "../run/c.sock"], "/home").containerd, "/run/c.sock");
});

test("refuses flags and values that it does not understand", () => {
  for (const flags of [["--grcp", "a:1"], ["extra"], ["--data"], ["--data", "/"], ["--http", "7601"]]) {
    assert.throws(() => parseUpFlags(flags, "/"), { code: "BAD_USAGE" }, flags.join(" "));
  }
});

test("refuses an HTTP port that browsers and fetch don't open", () => {
  assert.throws(() => parseUpFlags(["--http", "127.0.0.1:10080"], "/"), {
    code: "BAD_USAGE",
    message: /--http 127.0.0.1:10080 has a port that browsers refuse to open/,
  });
  assert.equal(parseUpFlags(["--grpc", "127.0.0.1:10080"], "/").grpc, "127.0.0.1:10080");
});

test("the records can be stored on the disk or in etcd", () => {
  assert.equal(parseUpFlags(["--store", "etcd"], "/").store, "etcd");
  assert.throws(
    () => parseUpFlags(["--store", "postgres"], "/"),
    /--store postgres is neither disk nor etcd/,
  );
});

test("addresses may be names, IPv4 and bracketed IPv6", () => {
  assert.deepEqual(parseAddress("[::1]:7600", "--grpc"), { host: "::1", port: 7600 });
  assert.deepEqual(parseAddress("node-1.lan:1", "--grpc"), { host: "node-1.lan", port: 1 });
  assert.throws(() => parseAddress("127.0.0.1:70000", "--grpc"), /--grpc/);
});
