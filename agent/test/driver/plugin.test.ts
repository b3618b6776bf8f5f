import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { X509CertificateGenerator } from "@forage/identity/x509";
import {
  CapabilitiesResponse,
  type FingerprintResponse,
  FingerprintResponse_HealthState as HealthState,
} from "@forage/proto/plugins/drivers/proto/driver";
import { ChannelCredentials, type ServiceError, status } from "@grpc/grpc-js";
import { until } from "../until.ts";
import { call, type LaunchOptions, PluginClient, type PluginProgram, runToEnd } from "./plugin-client.ts";

const PROGRAM: PluginProgram = {
  file: process.execPath,
  args: [join(import.meta.dirname, "..", "..", "src", "driver", "main.ts")],
};

/** A directory with a nerdctl that simulates a containerd, whose socket the test opens and closes. */
class FakeContainerd {
  readonly dir = mkdtempSync(join(tmpdir(), "forage-plugin-"));
  readonly socket = join(this.dir, "containerd.sock");
  #server: Server | undefined;

  constructor(t: TestContext) {
    const answer =
      '{"Client":{"Version":"v2.1.6"},"Server":{"Components":[{"Name":"containerd","Version":"v1.7.24"}]}}';
    const program = `#!/bin/sh\n[ -e ${this.dir}/broken ] && { echo "no answer" >&2; exit 1; }\necho '${answer}'\n`;
    writeFileSync(join(this.dir, "nerdctl"), program, { mode: 0o755 });
    t.after(async () => {
      await this.stop();
      rmSync(this.dir, { recursive: true });
    });
  }

  get config() {
    return {
      containerd_address: this.socket,
      nerdctl: join(this.dir, "nerdctl"),
      data_dir: join(this.dir, "data"),
      run_dir: join(this.dir, "run"),
    };
  }

  async start(): Promise<void> {
    this.#server = createServer((socket) => socket.on("error", () => undefined).resume());
    await new Promise<void>((resolve) => this.#server?.listen(this.socket, resolve));
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }
}

async function launch(t: TestContext, options?: LaunchOptions, program = PROGRAM): Promise<PluginClient> {
  const client = await PluginClient.launch(program, options);
  t.after(() => client.close());
  return client;
}

/** Collects the messages of the fingerprint stream. */
function fingerprints(t: TestContext, client: PluginClient): { readonly all: FingerprintResponse[] } {
  const all: FingerprintResponse[] = [];
  const stream = client.driver.fingerprint({});
  stream.on("data", (response: FingerprintResponse) => all.push(response));
  stream.on("error", () => undefined);
  t.after(() => stream.cancel());
  return { all };
}

function failure(promise: Promise<unknown>): Promise<ServiceError> {
  return promise.then(
    () => assert.fail("the call succeeded"),
    (error: ServiceError) => error,
  );
}

test("refuses to run without Nomad's cookie: explains on stderr, prints nothing on stdout and exits with 1", async () => {
  for (const cookie of [undefined, "wrong"]) {
    const exit = await runToEnd(PROGRAM, { env: { NOMAD_PLUGIN_MAGIC_COOKIE: cookie } });
    assert.deepEqual({ code: exit.code, stdout: exit.stdout }, { code: 1, stdout: "" });
    assert.match(exit.stderr, /a plugin that Nomad starts by itself/);
  }
});

test("rejects environments that it doesn't support", async () => {
  const cases = {
    "supports version 2 only": { PLUGIN_PROTOCOL_VERSIONS: "1,3" },
    "is not a certificate": { PLUGIN_CLIENT_CERT: "nonsense" },
    "must be a port": { PLUGIN_MIN_PORT: "many" },
    "there is no group": { PLUGIN_UNIX_SOCKET_GROUP: "no-such-group" },
  };
  await Promise.all(
    Object.entries(cases).map(async ([expected, env]) => {
      const { code, stdout, stderr } = await runToEnd(PROGRAM, { env });
      assert.deepEqual({ code, stdout }, { code: 1, stdout: "" }, expected);
      assert.ok(stderr.includes(expected), stderr);
    }),
  );
});

test("passes the three launches of Nomad's start, and the first two leave nothing behind", async (t) => {
  const containerd = new FakeContainerd(t);
  await containerd.start();
  const before = readdirSync(containerd.dir).sort();
  const first = await launch(t);
  const { core, app, network, protocol, certificate, multiplex } = first.handshake;
  assert.deepEqual(
    { core, app, network, protocol, certificate, multiplex },
    { core: "1", app: "2", network: "unix", protocol: "grpc", certificate: "", multiplex: undefined },
  );
  assert.equal(statSync(first.handshake.address).mode & 0o777, 0o600);
  assert.deepEqual(await first.pluginInfo(), {
    type: 2,
    pluginApiVersions: ["v0.1.0"],
    pluginVersion: "0.1.0",
    name: "forage",
  });
  assert.equal((await first.configSchema()).spec?.block?.$case, "object");
  assert.equal(await first.shutdown(), 0);
  assert.equal(existsSync(first.handshake.address), false);
  assert.equal(first.stdout.split("\n").length, 2);

  const second = await launch(t);
  await second.setConfig(containerd.config, false);
  await second.setConfig(containerd.config, false);
  assert.equal(await second.shutdown(), 0);
  assert.deepEqual(readdirSync(containerd.dir).sort(), before);

  const third = await launch(t);
  await third.setConfig(containerd.config);
  const { all } = fingerprints(t, third);
  await until("the first fingerprint", () => all.length > 0);
  assert.equal(all[0]?.health, HealthState.HEALTHY);
  assert.deepEqual(all[0]?.attributes["driver.forage"]?.value, { $case: "boolVal", value: true });
  assert.deepEqual(all[0]?.attributes["driver.forage.containerd_version"]?.value, {
    $case: "stringVal",
    value: "1.7.24",
  });
  assert.equal(await third.shutdown(), 0);
});

test("the health follows containerd: undetected, healthy, unhealthy and healthy again", async (t) => {
  const containerd = new FakeContainerd(t);
  const client = await launch(t);
  await client.setConfig(containerd.config);
  const { all } = fingerprints(t, client);
  const reaches = (state: HealthState): Promise<void> =>
    until(`health ${state}`, () => all.at(-1)?.health === state);
  await reaches(HealthState.UNDETECTED);
  assert.match(all[0]?.healthDescription ?? "", /containerd has no socket at /);
  assert.deepEqual(all[0]?.attributes, {});
  await containerd.start();
  await reaches(HealthState.HEALTHY);
  await containerd.stop();
  await reaches(HealthState.UNHEALTHY);
  await containerd.start();
  await reaches(HealthState.HEALTHY);
});

test("a failing nerdctl makes the driver unhealthy, with the reason", async (t) => {
  const containerd = new FakeContainerd(t);
  await containerd.start();
  writeFileSync(join(containerd.dir, "broken"), "");
  const client = await launch(t);
  await client.setConfig(containerd.config);
  const { all } = fingerprints(t, client);
  await until("the first fingerprint", () => all.length > 0);
  assert.equal(all[0]?.health, HealthState.UNHEALTHY);
  assert.match(all[0]?.healthDescription ?? "", /does not respond: .*no answer/);
});

test("rejects invalid configuration with every problem and its path, and malformed input", async (t) => {
  const client = await launch(t);
  const wrong = await failure(client.setConfig({ enabled: "yes", gc: { image_delay: "soon" }, colour: 1 }));
  assert.equal(wrong.code, status.INVALID_ARGUMENT);
  for (const path of ["plugin config.enabled", "plugin config.gc.image_delay", "plugin config.colour"])
    assert.ok(wrong.details.includes(path), wrong.details);
  const garbage = await failure(client.setConfig(Uint8Array.of(0xc1, 0xff)));
  assert.equal(garbage.code, status.INVALID_ARGUMENT);
  // The bytes that a real Nomad sends for `enabled = true`.
  await client.setConfig(Buffer.from("81a7656e61626c6564c3", "hex"));
  await client.setConfig(new Uint8Array());
});

test("rejects calls about tasks before configuration, and a start with every problem of its configuration", async (t) => {
  const client = await launch(t);
  const start = (msgpackDriverConfig: Buffer): Promise<ServiceError> => {
    const task = { ...EMPTY_TASK, id: "a/b/c", msgpackDriverConfig };
    return failure(call((done) => client.driver.startTask({ task }, done)));
  };
  assert.equal((await start(Buffer.alloc(0))).code, status.FAILED_PRECONDITION);
  await client.setConfig({});
  const wrong = await start(Buffer.from("81a7636f6d6d616e6401", "hex"));
  assert.equal(wrong.code, status.INVALID_ARGUMENT);
  assert.match(
    wrong.details,
    /config\.image: is required; config\.command: must be a string, and is a number/,
  );
  assert.equal((await start(Buffer.of(0xc1))).code, status.INVALID_ARGUMENT);
});

const EMPTY_TASK = {
  ...{ id: "", name: "", env: {}, deviceEnv: {}, resources: undefined, mounts: [], devices: [], user: "" },
  ...{ allocDir: "", stdoutPath: "", stderrPath: "", taskGroupName: "", jobName: "", allocId: "" },
  ...{ networkIsolationSpec: undefined, dns: undefined, msgpackDriverConfig: Buffer.alloc(0) },
};

test("answers the calls of newer versions of Nomad, and reports that it collects no logs", async (t) => {
  const client = await launch(t);
  await client.setConfig({ disable_log_collection: true });
  const raw = (name: string): Promise<Buffer> =>
    call((done) =>
      client.driver.makeUnaryRequest(
        `/hashicorp.nomad.plugins.drivers.proto.Driver/${name}`,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.alloc(0),
        (error, bytes) => done(error, bytes ?? Buffer.alloc(0)),
      ),
    );
  assert.equal((await raw("Init")).length, 0);
  assert.equal((await raw("Shutdown")).length, 0);
  const bytes = await raw("Capabilities");
  assert.deepEqual(bytes.subarray(-2), Buffer.of(0x40, 0x01));
  // A parser of the frozen contract ignores the addition.
  const { capabilities } = CapabilitiesResponse.decode(bytes);
  assert.deepEqual(
    [capabilities?.exec, capabilities?.sendSignals, capabilities?.fsIsolation],
    [true, true, 2],
  );
  await client.setConfig({});
  assert.notDeepEqual((await raw("Capabilities")).subarray(-2), Buffer.of(0x40, 0x01));
});

test("writes failures to stderr as hclog's JSON", async (t) => {
  const client = await launch(t);
  await failure(client.setConfig({ colour: 1 }));
  await until("a log line", () => client.logLines.length > 0);
  const [line] = client.logLines;
  assert.deepEqual(
    { level: line?.["@level"], message: line?.["@message"], method: line?.method },
    { level: "warn", message: "call-failed", method: "SetConfig" },
  );
  assert.match(String(line?.["@timestamp"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

test("ignores Ctrl-C and survives the Nomad that started it, so that a new one can attach", async (t) => {
  const client = await launch(t);
  await client.setConfig({});
  process.kill(client.pid, "SIGINT");
  client.disconnect();
  client.breakPipes();
  const again = PluginClient.attach(client.handshake);
  t.after(() => again.close());
  assert.equal((await again.pluginInfo()).name, "forage");
  // The log line about this failure has no reader.
  await failure(again.setConfig({ colour: 1 }));
  await call((done) => again.controller.shutdown({}, done));
  assert.equal(await client.exited(), 0);
});

test("creates the socket at the host's path, accessible to the host's group", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-plugin-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const client = await launch(t, { env: { PLUGIN_UNIX_SOCKET_DIR: dir, PLUGIN_UNIX_SOCKET_GROUP: "12345" } });
  const { mode, gid } = statSync(client.handshake.address);
  assert.deepEqual({ mode: mode & 0o777, gid }, { mode: 0o660, gid: 12_345 });
  assert.equal(await client.shutdown(), 0);
  assert.deepEqual(readdirSync(dir), []);
});

test("listens on a loopback port of the range on request", async (t) => {
  const env = { PLUGIN_MIN_PORT: "21710", PLUGIN_MAX_PORT: "21790" };
  const program = { ...PROGRAM, args: [...PROGRAM.args, "--listen", "tcp"] };
  const client = await launch(t, { env }, program);
  assert.match(client.handshake.address, /^127\.0\.0\.1:217\d\d$/);
  assert.equal((await client.pluginInfo()).name, "forage");
});

test("uses TLS for a host that sends a certificate, and accepts that certificate only", async (t) => {
  const host = await clientCertificate();
  const other = await clientCertificate();
  const env = { PLUGIN_CLIENT_CERT: host.pem, PLUGIN_MULTIPLEX_GRPC: "true" };
  const client = await PluginClient.launch(PROGRAM, { env }, ({ certificate }) => tls(certificate, host));
  t.after(() => client.close());
  assert.equal(client.handshake.multiplex, "false");
  assert.doesNotMatch(client.handshake.certificate, /=/);
  assert.equal((await client.pluginInfo()).name, "forage");
  const fields = client.handshake;
  await assert.rejects(
    PluginClient.attach(fields, tls(fields.certificate, other)).pluginInfo(),
    (error: ServiceError) => error.code === status.UNAVAILABLE,
  );
});

interface ClientCertificate {
  readonly pem: string;
  readonly keyPem: string;
}

async function clientCertificate(): Promise<ClientCertificate> {
  const algorithm = { name: "ECDSA", namedCurve: "P-521", hash: "SHA-512" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: "CN=localhost",
    keys,
    signingAlgorithm: algorithm,
  });
  const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
  const lines = der.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    pem: certificate.toString("pem"),
    keyPem: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
  };
}

function tls(server: string, { pem, keyPem }: ClientCertificate): ChannelCredentials {
  const lines = Buffer.from(server, "base64").toString("base64").replace(/.{64}/g, "$&\n");
  const root = `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
  return ChannelCredentials.createSsl(Buffer.from(root), Buffer.from(keyPem), Buffer.from(pem));
}
