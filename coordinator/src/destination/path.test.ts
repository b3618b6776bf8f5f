import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseProfilePath, parseServicePath } from "./path.ts";

describe("paths that name a service", () => {
  for (const [path, service, namespace, port] of [
    ["web.shop.svc.cluster.local:8080", "web", "shop", 8080],
    ["web.shop.svc.cluster.local", "web", "shop", 80],
    ["web.shop.svc.cluster.local.:1", "web", "shop", 1],
    ["WEB.Shop.svc.Cluster.Local:65535", "web", "shop", 65_535],
    ["a-1.b-2.svc.cluster.local:080", "a-1", "b-2", 80],
    ["svc.svc.svc.cluster.local", "svc", "svc", 80],
  ] as const) {
    test(path, () => {
      const expected = { kind: "service", service, namespace, hostname: "", port };
      assert.deepEqual(parseServicePath(path, "cluster.local"), expected);
      assert.deepEqual(parseProfilePath(path, "cluster.local"), expected);
    });
  }
  test("with a domain of one's own", () => {
    assert.equal(parseServicePath("a.b.svc.edge.example", "edge.example").service, "a");
  });
});

describe("paths that can't name one", () => {
  for (const path of [
    "",
    ":80",
    "web",
    "web.shop",
    "web.shop.svc",
    "web.shop.svc.cluster.local:",
    "web.shop.svc.cluster.local:0",
    "web.shop.svc.cluster.local:65536",
    "web.shop.svc.cluster.local:http",
    "web.shop.svc.cluster.local:80:80",
    "web.shop.svc.cluster.local:-1",
    "web.shop.svc.cluster.local:1e3",
    "web.shop.svc.cluster.local: 80",
    "web.shop.svc.cluster.local..",
    "web.shop.svc.other.local:80",
    "web.shop.svcXcluster.local",
    ".shop.svc.cluster.local",
    "web..svc.cluster.local",
    "-web.shop.svc.cluster.local",
    "a.pod.web.shop.svc.cluster.local",
    "192.0.2.1:80",
    "[::1]:80",
    "::1",
    "web.shop.svc.cluster.local/x",
    "web.shop.svc.cluster.local\n:80",
    `${"x".repeat(100_000)}.svc.cluster.local`,
  ]) {
    test(JSON.stringify(path.slice(0, 60)), () => {
      assert.throws(
        () => parseServicePath(path, "cluster.local"),
        (error: Error & { code?: string }) => error.code === "INVALID" && error.message.length < 500,
      );
    });
  }
});

test("a domain's dots are only dots", () => {
  assert.throws(() => parseServicePath("a.b.svc.clusterXlocal", "cluster.local"), { code: "INVALID" });
});

test("a pod of a headless service has a name of its own", () => {
  const { hostname, service, port } = parseServicePath(
    "web-1.web.shop.svc.cluster.local:81",
    "cluster.local",
  );
  assert.deepEqual([hostname, service, port], ["web-1", "web", 81]);
});

describe("profiles can be looked up by address", () => {
  for (const [path, ip, port] of [
    ["192.0.2.1:8080", "192.0.2.1", 8080],
    ["192.0.2.1", "192.0.2.1", 80],
    ["[2001:db8::7]:443", "2001:db8::7", 443],
    ["[::1]", "::1", 80],
  ] as const) {
    test(path, () =>
      assert.deepEqual(parseProfilePath(path, "cluster.local"), { kind: "address", ip, port }),
    );
  }
  for (const path of [
    "192.0.2.1:",
    "192.0.2.1:0",
    "192.0.2.1:65536",
    "192.0.2.1:http",
    "192.0.2.256:80",
    "[192.0.2.1]:80",
    "::1",
    "2001:db8::7:443",
    "[::1]:x",
    "[::1",
    "[web.shop.svc.cluster.local]:80",
    "",
  ]) {
    test(`not ${JSON.stringify(path)}`, () =>
      assert.throws(() => parseProfilePath(path, "cluster.local"), { code: "INVALID" }));
  }
});

describe("names that DNS can't have are refused before they become keys", () => {
  const parsers = { parseServicePath, parseProfilePath };
  const suffix = ".shop.svc.cluster.local";
  const longest = "x".repeat(253 - suffix.length) + suffix;
  for (const [name, parse] of Object.entries(parsers)) {
    test(`${name} takes 253 characters, a last dot and a port`, () => {
      assert.equal(parse(`${longest}.:65535`, "cluster.local").port, 65_535);
    });
    test(`${name} refuses 254 characters`, () => {
      assert.throws(() => parse(`x${longest}`, "cluster.local"), {
        code: "INVALID",
        message: /253 characters/,
      });
    });
    test(`${name} refuses a megabyte without matching it`, () => {
      const path = `${"x".repeat(1_000_000)}${suffix}`;
      assert.throws(() => parse(path, "cluster.local"), { code: "INVALID", message: /260 characters/ });
    });
  }
});
