import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseProfilePath, parseServicePath } from "./path.ts";

describe("parses paths of services", () => {
  for (const [path, service, namespace, port] of [
    ["web.shop.svc.cluster.local:8080", "web", "shop", 8080],
    ["web.shop.svc.cluster.local", "web", "shop", 80],
    ["web.shop.svc.cluster.local.:1", "web", "shop", 1],
    ["WEB.Shop.svc.Cluster.Local:65535", "web", "shop", 65_535],
    ["a-1.b-2.svc.cluster.local:080", "a-1", "b-2", 80],
    ["svc.svc.svc.cluster.local", "svc", "svc", 80],
  ] as const) {
    test(path, () => {
      const expected = { type: "service", service, namespace, hostname: "", port };
      assert.deepEqual(parseServicePath(path, "cluster.local"), expected);
      assert.deepEqual(parseProfilePath(path, "cluster.local"), expected);
    });
  }
  test("accepts a custom domain", () => {
    assert.equal(parseServicePath("a.b.svc.edge.example", "edge.example").service, "a");
  });
});

describe("refuses invalid paths of services", () => {
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

test("matches the dots of a domain literally", () => {
  assert.throws(() => parseServicePath("a.b.svc.clusterXlocal", "cluster.local"), { code: "INVALID" });
});

test("parses the hostname of a pod of a headless service", () => {
  const { hostname, service, port } = parseServicePath(
    "web-1.web.shop.svc.cluster.local:81",
    "cluster.local",
  );
  assert.deepEqual([hostname, service, port], ["web-1", "web", 81]);
});

describe("parses addresses in profile look-ups", () => {
  for (const [path, ip, port] of [
    ["192.0.2.1:8080", "192.0.2.1", 8080],
    ["192.0.2.1", "192.0.2.1", 80],
    ["[2001:db8::7]:443", "2001:db8::7", 443],
    ["[::1]", "::1", 80],
  ] as const) {
    test(path, () =>
      assert.deepEqual(parseProfilePath(path, "cluster.local"), { type: "address", ip, port }),
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
    test(`refuses ${JSON.stringify(path)}`, () =>
      assert.throws(() => parseProfilePath(path, "cluster.local"), { code: "INVALID" }));
  }
});

describe("limits names to the length of DNS names", () => {
  const parsers = { parseServicePath, parseProfilePath };
  const suffix = ".shop.svc.cluster.local";
  const longest = "x".repeat(253 - suffix.length) + suffix;
  for (const [name, parse] of Object.entries(parsers)) {
    test(`${name} accepts 253 characters, a trailing dot and a port`, () => {
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
