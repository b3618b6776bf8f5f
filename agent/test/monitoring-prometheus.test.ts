import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type RequestOptions, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { CertificateAuthority } from "@forage/identity/ca";
import { freePorts } from "../../hack/lib/free-ports.ts";
import { run } from "../../hack/lib/run.ts";
import { spawnProgram } from "../../hack/lib/spawn-program.ts";
import { startHttpServer } from "../src/http/http-server.ts";
import { Metrics } from "../src/http/metrics.ts";
import { until } from "./until.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples/monitoring");
const STOP_GRACE_MS = 2_000;
const USER = "edge-1";
const PASSWORD = "beans-for-prometheus";
/** The password's bcrypt hash with the lowest cost. */
const HASH = "$2b$04$abcdefghijklmnopqrstuunUw0qeMCSuPsnh5ThPaluYpvYPHskq2";

test("Prometheus scrapes agent and gateway with the example configuration, and sends the metrics over TLS with its password", {
  timeout: 180_000,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-monitoring-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  cpSync(EXAMPLES, dir, { recursive: true });
  const agent = await anAgent(t);
  const [centralPort = 0, hostPort = 0] = await freePorts(2);
  const authority = await CertificateAuthority.create("monitoring", { nowMs: Date.now, randomBytes });
  const { chainPem, keyPem } = await authority.issueServer({
    dnsNames: ["localhost"],
    ipAddresses: ["127.0.0.1"],
  });
  const files = {
    "ca.crt": authority.certPem,
    "tls.crt": chainPem,
    "tls.key": keyPem,
    password: PASSWORD,
    "web.yml": `tls_server_config: { cert_file: tls.crt, key_file: tls.key }\nbasic_auth_users: { ${USER}: ${HASH} }\n`,
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content);
  const host = join(dir, "prometheus-host.yml");
  const changes: readonly (readonly [string, string])[] = [
    ["127.0.0.1:7602", `127.0.0.1:${agent.port}`],
    ["interval: 15s", "interval: 1s"],
    ["https://prometheus.example", `https://127.0.0.1:${centralPort}`],
    [
      "password_file: /etc/prometheus/remote-write-password",
      `password_file: ${dir}/password\n    tls_config: { ca_file: ${dir}/ca.crt }`,
    ],
  ];
  let example = readFileSync(host, "utf8");
  for (const [before, after] of changes) {
    assert.ok(example.includes(before), before);
    example = example.replaceAll(before, after);
  }
  writeFileSync(host, example);
  await run("promtool", ["check", "config", "--agent", host]);
  const start = (name: string, flags: readonly string[]): void => {
    const program = spawnProgram("prometheus", flags, { logPath: join(dir, `${name}.log`), env: {} });
    t.after(() => program.end(STOP_GRACE_MS));
  };
  start("central", [
    `--config.file=${dir}/prometheus.yml`,
    `--web.config.file=${dir}/web.yml`,
    "--web.enable-remote-write-receiver",
    `--storage.tsdb.path=${dir}/central`,
    `--web.listen-address=127.0.0.1:${centralPort}`,
  ]);
  start("host", [
    "--enable-feature=agent",
    `--config.file=${host}`,
    `--storage.agent.path=${dir}/host`,
    `--web.listen-address=127.0.0.1:${hostPort}`,
  ]);
  const ask = (query: string, auth: string | undefined) =>
    get({
      host: "127.0.0.1",
      port: centralPort,
      path: `/api/v1/query?query=${encodeURIComponent(query)}`,
      ca: authority.certPem,
      ...(auth !== undefined && { auth }),
    });
  const own = `${USER}:${PASSWORD}`;
  for (const [query, value] of [
    [`forage_agent_pods{job="forage-agent",node="edge-1",phase="RUNNING"}`, "3"],
    [`envoy_cluster_upstream_rq_total{job="forage-gateway",node="edge-1"}`, "17"],
  ] as const)
    await until(`${query} is ${value}`, async () => {
      const { status, body } = await ask(query, own).catch(() => ({ status: 0, body: "" }));
      return status === 200 && (JSON.parse(body) as Answer).data.result[0]?.value[1] === value;
    });
  assert.equal((await ask("up", undefined)).status, 401);
  assert.equal((await ask("up", `${USER}:wrong`)).status, 401);
});

interface Answer {
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

/** Starts the HTTP port of an agent with three pods and a gateway. */
async function anAgent(t: TestContext): Promise<{ readonly port: number }> {
  const pod = { phase: "RUNNING", ready: true, containers: [] };
  const metrics = new Metrics({
    statuses: () => [pod, pod, pod] as never,
    usage: async () => ({ cpuNanos: 1, memoryBytes: 1, workingSetBytes: 1, oomKills: 0 }),
    link: () => ({ kind: "connected", sinceMs: 0, certificateEndsMs: 60_000 }),
    assignmentRevision: () => 7n,
    sessions: () => 0,
    gatewayReady: () => true,
    disk: async () => ({ totalBytes: 100, availableBytes: 40 }),
    nowMs: () => 0,
  });
  const server = await startHttpServer({
    listen: { host: "127.0.0.1", port: 0 },
    problems: () => [],
    isRefused: () => false,
    metrics,
    gatewayMetrics: async () =>
      "# TYPE envoy_cluster_upstream_rq_total counter\nenvoy_cluster_upstream_rq_total 17\n",
  });
  t.after(() => server.close());
  return server.address;
}

function get(options: RequestOptions): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const asking = request({ ...options, agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    asking.on("error", reject).end();
  });
}
