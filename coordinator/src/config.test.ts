import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError, hostPort, portRange, readConfig } from "./config.ts";

test("accepts ranges from a single port to all ports", () => {
  assert.deepEqual(portRange("30000-30000"), { first: 30_000, last: 30_000 });
  assert.deepEqual(portRange("1-65535"), { first: 1, last: 65_535 });
  for (const text of ["0-1", "2-1", "1-65536", "1", "1-2-3", ""])
    assert.equal(portRange(text), undefined, text);
});

const DATA = ["--data-dir", "/var/lib/forage"];

test("refuses a local directory for archives of workspaces with a store in etcd", (t) => {
  const etcd = { endpoints: ["http://127.0.0.1:2379"] };
  const read = (settings: object) =>
    readConfig(["--config", aFile(t, JSON.stringify({ dataDir: "/var/lib/forage", ...settings }))], {});
  const workspaces = { enabled: true };
  assert.throws(() => read({ store: { etcd }, workspaces }), {
    name: "ConfigError",
    message: /workspaces\.content: .* set s3, or directory to one that all coordinators share$/,
  });
  read({ workspaces });
  read({ store: { etcd } });
  read({ store: { etcd }, workspaces: { ...workspaces, content: { directory: "/mnt/shared" } } });
});

test("has defaults for everything but the data directory", () => {
  const config = readConfig(DATA, {});
  assert.partialDeepStrictEqual(config, {
    dataDir: "/var/lib/forage",
    grpc: { listen: "0.0.0.0:7600" },
    http: { listen: "127.0.0.1:7601" },
    destination: "off",
    clusterDomain: "cluster.local",
    profile: "pack",
    rollout: { progressDeadlineSeconds: 600, placementDeadlineSeconds: 20 },
    logLevel: "info",
  });
  assert.throws(() => readConfig([], {}), { name: "ConfigError", message: /dataDir/ });
});

test("prefers a flag to the environment, and the environment to the file", (t) => {
  const path = aFile(t, "dataDir: /file\nlogLevel: error\ngrpc: { listen: 127.0.0.1:1 }\n");
  const environment = {
    FORAGE_COORDINATOR_CONFIG: path,
    FORAGE_DATA_DIR: "/environment",
    FORAGE_LOG_LEVEL: "warn",
  };
  const config = readConfig(["--data-dir", "/flag"], environment);
  assert.equal(config.dataDir, "/flag");
  assert.equal(config.logLevel, "warn");
  assert.equal(config.grpc.listen, "127.0.0.1:1");
  const other = aFile(t, "dataDir: /other\n");
  assert.equal(readConfig(["--config", other], { FORAGE_COORDINATOR_CONFIG: path }).dataDir, "/other");
});

test("ignores the configuration of the forage command", (t) => {
  const path = aFile(t, "dataDir: /cli\n");
  assert.equal(readConfig(DATA, { FORAGE_CONFIG: path }).dataDir, "/var/lib/forage");
});

test("accepts each address by flag and environment", () => {
  const config = readConfig([...DATA, "--grpc", "[::]:1", "--destination", "off"], {
    FORAGE_HTTP: "127.0.0.1:2",
    FORAGE_DESTINATION: "127.0.0.1:3",
  });
  assert.deepEqual(
    [config.grpc, config.http, config.destination],
    [{ listen: "[::]:1" }, { listen: "127.0.0.1:2", tls: false }, "off"],
  );
  assert.deepEqual(readConfig([...DATA, "--destination", "[::1]:9"], {}).destination, { listen: "[::1]:9" });
});

test("overrides only the address of the HTTP listener by its flag", (t) => {
  const file = aFile(t, "dataDir: /d\nhttp: { listen: 'a:1', tls: true }");
  assert.deepEqual(readConfig(["--config", file, "--http", "b:2"], {}).http, { listen: "b:2", tls: true });
});

test("names each invalid setting", (t) => {
  for (const [text, message] of [
    ["dataDir: relative", /dataDir/],
    ["dataDir: /d\nunknown: 1", /unknown/],
    ["dataDir: /d\ngrpc: { listen: nowhere }", /grpc\.listen: must be HOST:PORT/],
    ["dataDir: /d\ngrpc: { listen: 'a:65536' }", /grpc\.listen/],
    ["dataDir: /d\nrollout: { progressDeadlineSeconds: 0 }", /rollout\.progressDeadlineSeconds/],
    ["dataDir: /d\nheartbeatIntervalSeconds: 0", /heartbeatIntervalSeconds/],
    [
      "dataDir: /d\nservices: { virtualIps: 10.0.0.1-10.0.0.9 }",
      /services\.virtualIps: must be an IPv4 CIDR/,
    ],
    ["dataDir: /d\nservices: { virtualIps6: 10.0.0.0/16 }", /services\.virtualIps6: must be an IPv6 CIDR/],
    ["dataDir: /d\nservices: { virtualIps: 'fd96::/112' }", /services\.virtualIps: must be an IPv4 CIDR/],
    [
      "dataDir: /d\nservices: { loadBalancerIps: [192.0.2.9-192.0.2.1] }",
      /services\.loadBalancerIps\.0: must be a CIDR or FIRST-LAST/,
    ],
    ["dataDir: /d\nservices: { loadBalancerIps: [10.0.0.0/8] }", /10\.0\.0\.0\/8 overlaps the virtual IPs/],
    ["dataDir: /d\nservices: { nodePorts: 2-1 }", /services\.nodePorts: must be FIRST-LAST/],
    [
      "dataDir: /d\nnodes: { unreachableSeconds: 4 }",
      /nodes\.unreachableSeconds: must be at least two heartbeats \(5\)/,
    ],
    ["dataDir: /d\nrebalance: { maxMoves: 2 }", /rebalance\.intervalSeconds/],
    ["dataDir: /d\nbackups: { keep: 0 }", /backups\.keep/],
    ["dataDir: /d\nbackups: { directory: here }", /backups\.directory/],
    ["dataDir: /d\nprofile: tight", /profile/],
    ["dataDir: /d\nlogLevel: loud", /logLevel/],
    ["dataDir: /d\nadminTokenFile: token", /adminTokenFile/],
    ["- a list", /settings, one/],
    ["just text", /settings, one/],
    ["a: [", /config\.yaml/],
    ["a: 1\na: 2", /config\.yaml.*unique/is],
  ] as const) {
    const path = aFile(t, text);
    assert.throws(
      () => readConfig(["--config", path], {}),
      (error: unknown) =>
        error instanceof ConfigError && message.test(error.message) && error.message.includes(path),
      text,
    );
  }
  assert.throws(() => readConfig(["--config", "/nonexistent/config.yaml"], {}), /ENOENT/);
  assert.throws(() => readConfig([...DATA, "--unknown"], {}), {
    name: "ConfigError",
    message: /usage: forage-coordinator/,
  });
  assert.throws(() => readConfig([...DATA, "--grpc"], {}), { name: "ConfigError" });
});

test("accepts only loopback addresses for Destination in plain text", () => {
  for (const address of ["127.0.0.1:8086", "127.9.9.9:8086", "[::1]:8086", "localhost:8086"])
    assert.deepEqual(readConfig([...DATA, "--destination", address], {}).destination, { listen: address });
  for (const address of [
    "0.0.0.0:8086",
    "192.0.2.1:8086",
    "[::]:8086",
    "127.example:8086",
    "127.0.0.1.example:8086",
  ])
    assert.throws(() => readConfig([...DATA, "--destination", address], {}), /not a loopback address/);
});

test("splits addresses into host and port", () => {
  assert.deepEqual(hostPort("127.0.0.1:80"), { host: "127.0.0.1", port: 80 });
  assert.deepEqual(hostPort("[::1]:80"), { host: "::1", port: 80 });
  assert.deepEqual(hostPort("host.example:65535"), { host: "host.example", port: 65_535 });
});

function aFile(t: TestContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "forage-config-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "config.yaml");
  writeFileSync(path, text);
  return path;
}
