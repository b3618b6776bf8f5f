import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ConfigError, readConfig } from "./config.ts";

let dir = "";
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "forage-config-"));
});
after(() => rm(dir, { recursive: true, force: true }));

const MINIMAL = "dataDir: /var/lib/x\ncoordinator: 10.0.0.1:7600\n";

test("two settings are sufficient, and the others have defaults", async () => {
  const config = await read(MINIMAL);
  assert.deepEqual(config.coordinator, { host: "10.0.0.1", port: 7600 });
  assert.equal(config.nodeName, "host-1");
  assert.deepEqual(config.http.listen, { host: "127.0.0.1", port: 7602 });
  assert.equal(config.containerd.namespace, "forage");
  assert.deepEqual(config.restart, { backOffBaseSeconds: 10, backOffCapSeconds: 300 });
});

test("further coordinators are a list in the file, and a comma-separated text elsewhere", async () => {
  const second = { host: "10.0.0.2", port: 7600 };
  const third = { host: "2001:db8::3", port: 7601 };
  assert.deepEqual((await read(MINIMAL)).coordinators, []);
  const listed = await read(`${MINIMAL}coordinators: ["10.0.0.2:7600", "[2001:db8::3]:7601"]\n`);
  assert.deepEqual(listed.coordinators, [second, third]);
  const flagged = await read(MINIMAL, ["--coordinators", "10.0.0.2:7600,[2001:db8::3]:7601"]);
  assert.deepEqual(flagged.coordinators, [second, third]);
});

test("a flag takes precedence over the environment, which takes precedence over the file", async () => {
  const file = `${MINIMAL}nodeName: from-file\nlogLevel: warn\ncontainerd: { namespace: from-file }\n`;
  const environment = { FORAGE_AGENT_NODE_NAME: "from-env", FORAGE_AGENT_CONTAINERD_NAMESPACE: "from-env" };
  const config = await read(file, ["--node-name", "from-flag"], environment);
  assert.equal(config.nodeName, "from-flag");
  assert.equal(config.containerd.namespace, "from-env");
  assert.equal(config.logLevel, "warn");
});

test("maps are maps in the file, and pairs elsewhere", async () => {
  const config = await read(`${MINIMAL}labels: { zone: a, tier: 1 }\nreserve: { cpu: 200m }\n`);
  assert.deepEqual(config.labels, { zone: "a", tier: "1" });
  assert.deepEqual(config.reserve, { cpu: "200m" });
  const other = await read(MINIMAL, ["--labels", "zone=b,rack=2", "--logs-node-limit", "2Gi"]);
  assert.equal(other.logs.nodeLimitBytes, 2 * 2 ** 30);
  assert.equal(config.logs.nodeLimitBytes, undefined);
  assert.deepEqual(other.labels, { zone: "b", rack: "2" });
});

test("the settings of a gateway are a group", async () => {
  const { gateway } = await read(MINIMAL);
  assert.deepEqual([gateway.httpPort, gateway.httpsPort, gateway.address], [80, 443, undefined]);
  const other = await read(`${MINIMAL}gateway: { httpPort: 8080, address: "::1" }\n`, [
    ...["--gateway-https-port", "8443", "--gateway-memory-limit", "2Gi"],
    ...["--gateway-image", "registry.example:5000/envoy@sha256:0", "--gateway-envoy", "/opt/envoy"],
  ]);
  assert.deepEqual(other.gateway, {
    ...{ httpPort: 8080, httpsPort: 8443, address: "::1", memoryLimitBytes: 2 ** 31, connectionsMax: 50_000 },
    ...{ image: "registry.example:5000/envoy@sha256:0", envoy: "/opt/envoy", trustedProxies: 0 },
  });
  for (const bad of [
    "address: example.com",
    "httpPort: 0",
    'image: "a b"',
    "envoy: envoy",
    "trustedProxies: 11",
  ])
    await assert.rejects(read(`${MINIMAL}gateway: { ${bad} }\n`), /gateway\./);
});

test("devices and runtime classes are set in the file or as text", async () => {
  const config = await read(`${MINIMAL}devices:
  example.com/fuse: [/dev/fuse]
runtimeClasses: { gvisor: /usr/bin/runsc, kata: io.containerd.kata.v2 }
`);
  assert.deepEqual(config.devices["example.com/fuse"]?.[0]?.devices[0]?.hostPath, "/dev/fuse");
  assert.deepEqual(config.runtimeClasses, { gvisor: "/usr/bin/runsc", kata: "io.containerd.kata.v2" });
  const other = await read(MINIMAL, ["--devices", '{"a.b/c":["/dev/x"]}', "--runtime-classes", "a=/bin/b"]);
  assert.deepEqual(Object.keys(other.devices), ["a.b/c"]);
  assert.deepEqual(other.runtimeClasses, { a: "/bin/b" });
  assert.deepEqual((await read(MINIMAL)).devices, {});
});

test("IPv6 is off by default; addresses are normalized", async () => {
  const { podCidr6, advertiseAddress6 } = await read(MINIMAL);
  assert.deepEqual([podCidr6, advertiseAddress6], [undefined, undefined]);
  const other = await read(`${MINIMAL}podCidr6: fd64::/64\nadvertiseAddress6: "2001:DB8:0::1"\n`);
  assert.deepEqual([other.podCidr6, other.advertiseAddress6], ["fd64::/64", "2001:db8::1"]);
  assert.equal((await read(`${MINIMAL}advertiseAddress: "2001:db8::1"\n`)).advertiseAddress, "2001:db8::1");
});

test("http may be off, and listens on loopback addresses only", async () => {
  assert.equal((await read(`${MINIMAL}http: { listen: "off" }\n`)).http.listen, undefined);
  await assert.rejects(
    read(`${MINIMAL}http: { listen: "0.0.0.0:7602" }\n`),
    /http\.listen: must be a loopback address/,
  );
});

test("parses the ports that pods may reach, with both protocols", async () => {
  const none = await read(MINIMAL);
  assert.deepEqual(none.podAccess, { metadata: "deny", host: "all", hostPorts: [] });
  const limited = await read(
    `${MINIMAL}podAccess: { metadata: allow, host: limited, hostPorts: [7600, 514/udp] }\n`,
  );
  const hostPorts = [
    { protocol: "tcp", port: 7600 },
    { protocol: "udp", port: 514 },
  ];
  assert.deepEqual(limited.podAccess, { metadata: "allow", host: "limited", hostPorts });
});

for (const [what, file, message] of [
  ["a port that is none", `${MINIMAL}podAccess: { host: limited, hostPorts: 0 }\n`, /hostPorts: must be at/],
  [
    "ports without a limit",
    `${MINIMAL}podAccess: { hostPorts: 7600 }\n`,
    /podAccess\.hostPorts: is only for/,
  ],
  ["an unknown setting", `${MINIMAL}colour: red\n`, /agent\.yaml: colour: there is no such setting/],
  [
    "an unknown setting in a group",
    `${MINIMAL}containerd: { colour: red }\n`,
    /containerd\.colour: there is no such/,
  ],
  ["a group that is a value", `${MINIMAL}containerd: 5\n`, /containerd: must be a group of settings/],
  ["a port in place of a group", `${MINIMAL}destination: 8086\n`, /destination: must be a group/],
  [
    "a port that is too high",
    `${MINIMAL}destination: { port: 70000 }\n`,
    /destination\.port: must be a port/,
  ],
  ["a number out of range", `${MINIMAL}podsMax: 0\n`, /podsMax: must be a whole number from 1 to 1000$/],
  ["a fraction", `${MINIMAL}podsMax: 1.5\n`, /podsMax: must be a whole number from 1 to 1000$/],
  [
    "a word that is none",
    `${MINIMAL}logs: { streams: both }\n`,
    /logs\.streams: must be one of combined, sep/,
  ],
  ["a switch that is none", `${MINIMAL}dns: maybe\n`, /dns: must be on or off/],
  ["a relative directory", "dataDir: x\ncoordinator: a:1\n", /dataDir: must be an absolute path/],
  ["a missing setting", "dataDir: /x\n", /coordinator: must be set/],
  ["a bad list", `${MINIMAL}coordinators: ["a:1", "b"]\n`, /coordinators: must be a list of HOST:PORT/],
  ["an empty list", `${MINIMAL}coordinators: []\n`, /coordinators: must be a list of 1 to 9 HOST:PORT/],
  ["a bad port", "dataDir: /x\ncoordinator: a:99999\n", /coordinator: must be HOST:PORT/],
  ["a bad instance", `${MINIMAL}instance: TooLongName\n`, /instance: must be 1 to 8/],
  ["a bad range", `${MINIMAL}hostPortRange: 9-1\n`, /hostPortRange: must be FIRST-LAST/],
  ["a bad quantity", `${MINIMAL}reserve: { cpu: lots }\n`, /reserve: must be/],
  ["a limit of nothing", `${MINIMAL}logs: { nodeLimit: 0 }\n`, /logs\.nodeLimit: must be a quantity/],
  ["a device that is none", `${MINIMAL}devices: { a.b/c: [x] }\n`, /devices: must be a\.b\/c: with absolute/],
  [
    "a mirror without TLS",
    `${MINIMAL}registries: { a.example: { mirrors: ["http://b"] } }\n`,
    /registries: must be a\.example: with mirrors such as https/,
  ],
  ["a runtime that is an option", `${MINIMAL}runtimeClasses: { a: --x }\n`, /runtimeClasses: must be names/],
  ["a domain that is none", `${MINIMAL}clusterDomain: "a b"\n`, /clusterDomain: must be a domain/],
  ["pods' IPv6 that is public", `${MINIMAL}podCidr6: "2001:db8::/64"\n`, /podCidr6: .* private range/],
  ["an address of a link", `${MINIMAL}advertiseAddress6: "fe80::1"\n`, /advertiseAddress6: must be an IPv6/],
  ["IPv4 as IPv6", `${MINIMAL}advertiseAddress6: 192.0.2.1\n`, /advertiseAddress6: must be an IPv6/],
  [
    "two addresses of IPv6",
    `${MINIMAL}advertiseAddress: "2001:db8::1"\nadvertiseAddress6: "2001:db8::2"\n`,
    /advertiseAddress6: is only for an advertiseAddress of IPv4/,
  ],
  ["YAML that is none", "a: [", /agent\.yaml: /],
  ["a file that is no map", "- a\n", /must contain settings/],
] as const) {
  test(`rejects ${what} and names the setting`, async () => {
    await assert.rejects(read(file), (error) => error instanceof ConfigError && message.test(error.message));
  });
}

test("reports all problems at once", async () => {
  await assert.rejects(read("dataDir: x\nnodeName: A_B\ncolour: red\n"), (error: Error) => {
    return ["dataDir", "nodeName", "colour", "coordinator"].every((name) => error.message.includes(name));
  });
});

test("a value for a group does not hide flags of the group", async () => {
  await assert.rejects(
    read(`${MINIMAL}containerd: 5\n`, ["--containerd-namespace", "n"]),
    /agent\.yaml: containerd: must be a group/,
  );
});

test("parses numbers, switches and ports from text too", async () => {
  const flags = ["--pods-max", "50", "--dns", "off", "--destination-port", "8086", "--nomad-socket", "off"];
  const config = await read(MINIMAL, flags);
  assert.deepEqual([config.podsMax, config.dns, config.destination.port], [50, false, 8_086]);
  assert.equal(config.nomad.socket, undefined);
});

test("rejects an unknown flag with the usage", async () => {
  await assert.rejects(readConfig(["--colour", "red"], {}, "host-1"), /usage: forage-agent/);
});

test("names a missing file", async () => {
  await assert.rejects(readConfig(["--config", "/does/not/exist"], {}, "host-1"), /\/does\/not\/exist/);
});

async function read(text: string, argv: readonly string[] = [], environment: Record<string, string> = {}) {
  const file = join(dir, "agent.yaml");
  await writeFile(file, text);
  return readConfig(["--config", file, ...argv], environment, "host-1");
}

test("files in the further directory take precedence over the configuration file, and later names over earlier ones", async () => {
  const file = join(dir, "beside.yaml");
  await writeFile(file, `${MINIMAL}nodeName: first\nlabels: { zone: a }\n`);
  await mkdir(`${file}.d`);
  await writeFile(join(`${file}.d`, "10-a.yaml"), "nodeName: second\ncoordinator: 10.0.0.2:7600\n");
  await writeFile(join(`${file}.d`, "20-b.yaml"), "nodeName: third\n");
  await writeFile(join(`${file}.d`, "30-c.yaml.bak"), "nodeName: fourth\n");
  const config = await readConfig(["--config", file], {}, "host-1");
  assert.deepEqual(
    [config.nodeName, config.coordinator.host, config.labels],
    ["third", "10.0.0.2", { zone: "a" }],
  );
  await writeFile(join(`${file}.d`, "20-b.yaml"), "nonsense: 1\n");
  await assert.rejects(
    readConfig(["--config", file], {}, "host-1"),
    /20-b\.yaml: nonsense: there is no such/,
  );
});
