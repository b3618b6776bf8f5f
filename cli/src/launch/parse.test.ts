import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CliError } from "../errors.ts";
import {
  nameOf,
  parseAmount,
  parseConstraint,
  parseEnvironment,
  parsePublication,
  parseReference,
  parseReplicas,
  parseRoute,
  parseVolume,
} from "./parse.ts";

const refused = (error: unknown): boolean => error instanceof CliError && error.code === "USAGE";

test("derives the name of the run from the image's name", () => {
  const names: Record<string, string> = {
    nginx: "nginx",
    "registry.example:5000/team/Web_App:1.4": "web-app",
    "registry.example/web@sha256:0123": "web",
    "web:1@sha256:0123": "web",
    "a/-x-": "x",
  };
  for (const [image, name] of Object.entries(names)) assert.equal(nameOf(image), name, image);
  assert.throws(() => nameOf("registry.example/___:1"), refused);
});

describe("ports, routes and amounts", () => {
  test("parses valid values", () => {
    assert.deepEqual(parsePublication("8080"), { port: 8080, target: 8080, protocol: "TCP" });
    assert.deepEqual(parsePublication("53:5353/udp"), { port: 53, target: 5353, protocol: "UDP" });
    assert.deepEqual(parseRoute("a.example"), { hostname: "a.example", path: "/" });
    assert.deepEqual(parseRoute("https://a.example/api/v1"), { hostname: "a.example", path: "/api/v1" });
    assert.deepEqual(parseAmount("--cpu", "250m"), { request: "250m", limit: undefined });
    assert.deepEqual(parseAmount("--cpu", "250m:1"), { request: "250m", limit: "1" });
    assert.deepEqual(parseAmount("--memory", "1Gi"), { request: "1Gi", limit: "1Gi" });
    assert.equal(parseReplicas("--replicas", "0"), 0);
  });

  test("refuses invalid values", () => {
    for (const text of ["", "0", "65536", "80:", ":80", "80:80:80", "80/icmp", "80-90"])
      assert.throws(() => parsePublication(text), refused, text);
    for (const text of ["", "/api", "a b", "a.example?x"])
      assert.throws(() => parseRoute(text), refused, text);
    for (const text of ["", ":1", "1:", "1:2:3"])
      assert.throws(() => parseAmount("--cpu", text), refused, text);
    for (const text of ["", "-1", "1.5", "10001", "1e3"])
      assert.throws(() => parseReplicas("--replicas", text), refused, text);
  });
});

describe("environment, volumes and constraints", () => {
  test("gives a variable its own value, or that of the caller's environment", () => {
    assert.deepEqual(parseEnvironment("A=b=c", {}), { name: "A", source: { value: "b=c" } });
    assert.deepEqual(parseEnvironment("A", { A: "" }), { name: "A", source: { value: "" } });
    assert.throws(() => parseEnvironment("A", {}), /is not set here/);
    assert.throws(() => parseEnvironment("=b", {}), refused);
  });

  test("converts references to objects to variables or files", () => {
    assert.deepEqual(parseReference("secret", "P=db/password"), {
      variable: { name: "P", source: { secret_ref: { secret_name: "db", key: "password" } } },
    });
    assert.deepEqual(parseReference("config", "settings:/etc/app"), {
      bind: {
        source: { config_map: { config_map_name: "settings" } },
        path: "/etc/app",
        readOnly: true,
      },
    });
    for (const text of ["db", "P=db", "db:relative", "P=/key", ":/x"])
      assert.throws(() => parseReference("secret", text), refused, text);
  });

  test("parses volumes from claims, directories of the host and empty directories", () => {
    assert.deepEqual(parseVolume("data:/d:ro"), {
      source: { pvc: { claim_name: "data" } },
      path: "/d",
      readOnly: true,
    });
    assert.deepEqual(parseVolume("/srv:/d").source, { host_path: { path: "/srv" } });
    assert.deepEqual(parseVolume("/d"), { source: { empty_dir: {} }, path: "/d", readOnly: false });
    for (const text of ["", "d", "data:d", "data:/d:rx", "a:b:/d"])
      assert.throws(() => parseVolume(text), refused, text);
  });

  test("parses conditions for labels", () => {
    assert.deepEqual(parseConstraint("zone=a"), { key: "zone", operator: "In", values: ["a"] });
    assert.deepEqual(parseConstraint("zone!=a"), { key: "zone", operator: "NotIn", values: ["a"] });
    assert.deepEqual(parseConstraint("gpu"), { key: "gpu", operator: "Exists", values: [] });
    assert.deepEqual(parseConstraint("!gpu"), { key: "gpu", operator: "DoesNotExist", values: [] });
    for (const text of ["", "=a", "zone=", "zone==a", "a b"])
      assert.throws(() => parseConstraint(text), refused, text);
  });
});
