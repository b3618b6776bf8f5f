import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { CertificateAuthority } from "@forage/identity/ca";
import {
  containerOf,
  type Json,
  type LabPod,
  type PodLab,
  shell,
  startPodLab,
} from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };

/** Short periods make the tests fast. Every number is set. */
const QUICK = { period_seconds: 1, timeout_seconds: 60, failure_threshold: 1, success_threshold: 1 };
const exec = (script: string): Json => ({ exec: { command: ["sh", "-c", script] } });
const pod = (probes: Json, script = "true", more: Json = {}): Json => ({
  container: { ...shell(script), ...probes },
  ...more,
});

/** Probes of a pod on the host's network reach servers of this process. Their answers are set by the test. */
function services(http: number, https: number, grpc: number): Readonly<Record<string, Json>> {
  const onHost = (probes: Json): Json => pod(probes, "true", { pod_config: { host_network: true } });
  const get = (path: string, more: Json = {}): Json => ({ http_get: { path, port: http, ...more } });
  return {
    http: onHost({
      readiness_probe: {
        ...QUICK,
        ...get("/ready?full=1", { http_headers: [{ name: "X-Probe", value: "yes" }] }),
      },
    }),
    redirected: onHost({ readiness_probe: { ...QUICK, ...get("/redirect") } }),
    https: onHost({ readiness_probe: { ...QUICK, http_get: { port: https, scheme: "HTTPS" } } }),
    "no-https": onHost({ readiness_probe: { ...QUICK, ...get("/fine", { scheme: "HTTPS" }) } }),
    tcp: onHost({ readiness_probe: { ...QUICK, tcp_socket: { port: http } } }),
    "tcp-closed": pod({ readiness_probe: { ...QUICK, tcp_socket: { port: 1 } } }),
    grpc: onHost({ readiness_probe: { ...QUICK, grpc: { port: grpc, service: "good" } } }),
    "grpc-bad": onHost({ readiness_probe: { ...QUICK, grpc: { port: grpc, service: "bad" } } }),
    exec: pod({ readiness_probe: { ...QUICK, ...exec("test -e /tmp/ready") } }),
    slow: pod({ readiness_probe: { ...QUICK, timeout_seconds: 1, ...exec("sleep 30") } }),
    delayed: pod({ readiness_probe: { ...QUICK, initial_delay_seconds: 3600, ...exec("touch /tmp/asked") } }),
    patient: pod({
      readiness_probe: { ...QUICK, failure_threshold: 3, success_threshold: 3, ...exec(COUNTING) },
    }),
    // The process lives until the test makes it fail.
    alive: pod({ liveness_probe: { ...QUICK, failure_threshold: 2, ...exec("test ! -e /tmp/sick") } }),
    // If startup did not delay it, liveness would fail at once.
    starting: pod({
      startup_probe: { ...QUICK, failure_threshold: 600, ...exec("test -e /tmp/started") },
      liveness_probe: { ...QUICK, ...exec("test -e /tmp/started") },
      readiness_probe: { ...QUICK, ...exec("true") },
    }),
    "never-up": pod({ startup_probe: { ...QUICK, failure_threshold: 2, ...exec("false") } }),
  };
}

/** Reports its number of calls, and fails the fourth and fifth one. */
const COUNTING =
  "n=$(cat /tmp/asked 2>/dev/null || echo 0); n=$((n+1)); echo $n > /tmp/asked; test $n -lt 4 -o $n -gt 5";

describe("probes on a real host", { concurrency: false }, () => {
  let lab: PodLab;
  const asked: IncomingMessage[] = [];
  let ready = false;
  const http = createServer((request, response) => {
    asked.push(request);
    if (request.url === "/redirect") response.writeHead(302, { location: "/fine" }).end();
    else if (request.url === "/fine") response.writeHead(200).end();
    else response.writeHead(ready ? 204 : 503).end();
  });
  const grpc = healthServer();
  let https: TlsServer | undefined;
  before(async () => {
    https = await tlsServer();
    const ports = [await listen(http), await listen(https), await listen(grpc)] as const;
    lab = await startPodLab();
    await lab.apply(services(...ports));
  }, LIMIT);
  after(async () => {
    http.closeAllConnections();
    http.close();
    https?.closeAllConnections();
    https?.close();
    grpc.close();
    await lab?.close();
  }, LIMIT);

  /**
   * Waits until the pod runs and is not ready for the given reason. Without a reason, any pod that has just started
   * would match.
   */
  const notReady = (service: string, why: RegExp): Promise<LabPod> =>
    lab.until(service, `runs and isn't ready: ${why}`, ({ status: it }) => {
      const runs = it?.containers?.[0]?.running !== undefined;
      return runs && it?.ready !== true && why.test(it?.message ?? "");
    });

  test("readiness_probe.http_get: path, headers and status decide, again and again", LIMIT, async () => {
    await notReady("http", /readiness probe (fails|has not passed yet): .*503/);
    ready = true;
    await lab.ready("http");
    const probe = asked.find(({ url }) => url === "/ready?full=1");
    assert.equal(probe?.headers["x-probe"], "yes");
    ready = false;
    await notReady("http", /readiness probe (fails|has not passed yet): .*503/);
  });

  test("readiness_probe.http_get: a redirect passes, and scheme HTTPS speaks TLS", LIMIT, async () => {
    await lab.ready("redirected");
    await lab.ready("https");
    await notReady("no-https", /readiness probe (fails|has not passed yet): /);
  });

  test("readiness_probe.tcp_socket: passes if a program listens", LIMIT, async () => {
    await lab.ready("tcp");
    await notReady("tcp-closed", /readiness probe (fails|has not passed yet): .*ECONNREFUSED/);
  });

  test("readiness_probe.grpc: passes when the service is SERVING", LIMIT, async () => {
    await lab.ready("grpc");
    await notReady("grpc-bad", /readiness probe (fails|has not passed yet): .*NOT_SERVING/);
  });

  test("readiness_probe.exec: passes when the command ends with 0", LIMIT, async () => {
    await notReady("exec", /readiness probe (fails|has not passed yet): .*exit code 1/);
    await lab.exec("exec", ["touch", "/tmp/ready"]);
    await lab.ready("exec");
  });

  test("probe.timeout_seconds: a probe that takes longer fails", LIMIT, async () => {
    const { status } = await notReady(
      "slow",
      /readiness probe (fails|has not passed yet): did not end within 1000 ms/,
    );
    assert.equal(status?.containers?.[0]?.restartCount ?? 0, 0);
  });

  test("probe.initial_delay_seconds: no probe is made before", LIMIT, async () => {
    await notReady("delayed", /readiness probe has not answered yet/);
    // A probe of the same period without a delay is made several times meanwhile.
    const asked = async () => Number((await lab.exec("patient", ["cat", "/tmp/asked"])).stdout);
    await lab.ready("patient");
    const before = await asked();
    await lab.until("patient", "was asked three times more", async () => (await asked()) >= before + 3);
    const { exitCode, stderr } = await lab.exec("delayed", ["test", "-e", "/tmp/asked"]);
    assert.equal(exitCode, 1, `the probe's command has not run; the session's error: ${stderr}`);
  });

  test(
    "probe.period_seconds, success_threshold and failure_threshold: that many results in a row",
    LIMIT,
    async () => {
      await lab.ready("patient");
      const count = async () => Number((await lab.exec("patient", ["cat", "/tmp/asked"])).stdout);
      const first = await count();
      // It takes three failures in a row to become unready, so two don't suffice.
      await lab.until("patient", "was asked more often", async () => (await count()) > Math.max(first, 6));
      assert.equal((await lab.ready("patient")).status?.ready, true);
    },
  );

  test("liveness_probe: a container that fails it is restarted", LIMIT, async () => {
    await lab.ready("alive");
    await lab.exec("alive", ["touch", "/tmp/sick"]);
    const pod = await lab.until("alive", "was restarted", (it) => (containerOf(it)?.restartCount ?? 0) > 0);
    assert.match(JSON.stringify(pod.status), /liveness/i);
    await lab.ready("alive");
  });

  test("startup_probe: delays the other probes until it has passed once", LIMIT, async () => {
    const waiting = await notReady("starting", /startup probe (fails|has not passed yet): .*exit code 1/);
    assert.notEqual(containerOf(waiting)?.started, true);
    await lab.exec("starting", ["touch", "/tmp/started"]);
    const pod = await lab.ready("starting");
    assert.equal(containerOf(pod)?.started, true);
    assert.equal(containerOf(pod)?.restartCount ?? 0, 0, "liveness wasn't asked before");
  });

  test("startup_probe: a container that never becomes ready is restarted", LIMIT, async () => {
    await lab.until("never-up", "was restarted", (it) => (containerOf(it)?.restartCount ?? 0) > 0);
  });
});

/** Answers grpc.health.v1.Health/Check: SERVING for the service `good`, NOT_SERVING for others. */
function healthServer(): Http2Server {
  return createHttp2Server().on("stream", (stream) => {
    const parts: Buffer[] = [];
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.on("end", () => {
      const serving = Buffer.concat(parts).includes("good");
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.from([0, 0, 0, 0, 2, 8, serving ? 1 : 2]));
    });
  });
}

/** Starts a server with a certificate of an unknown authority. */
async function tlsServer(): Promise<TlsServer> {
  const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: ["localhost"], ipAddresses: [] });
  return createTlsServer({ cert: chainPem, key: keyPem }, (_, response) => response.end());
}

function listen(server: Server | TlsServer | Http2Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "0.0.0.0", () => resolve((server.address() as AddressInfo).port));
  });
}
