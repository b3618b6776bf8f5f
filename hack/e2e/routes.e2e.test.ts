import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { CertificateAuthority } from "@forage/identity/ca";
import { ensureEnvoy } from "../lib/envoy.ts";
import { findProcesses } from "../lib/process-identity.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { waitForReadyPods } from "../system/pods.ts";
import { freeAddresses, type System, startSystem, waitForNode, waitForReady } from "../system/system.ts";

const LIMIT = { timeout: 240_000 };
const LIMIT_MS = 90_000;

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
}

/** Answers requests on port 8080 with its own name. */
const APP = "mkdir -p /tmp/www && echo $POD > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www";

describe("routes with a real coordinator, agent, Envoy and containers", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let httpPort = 0;
  let httpsPort = 0;

  before(async () => {
    host = await startTestHost();
    const envoy = await ensureEnvoy();
    const ports = (await freeAddresses(2)).map((address) => Number(address.split(":")[1]));
    [httpPort = 0, httpsPort = 0] = ports;
    system = await startSystem(host, {
      agent: { gateway: { envoy, address: "127.0.0.1", httpPort, httpsPort } },
    });
    await apply([workload("one", 2), service("one"), workload("two", 1), service("two")]);
    await waitForReadyPods(system, 3);
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  const apply = async (resources: readonly object[]): Promise<void> => {
    const { exitCode, stdout, stderr } = await system.forage(
      ["apply", "-f", "-", "--timeout", "120s"],
      JSON.stringify({ namespace: "e2e", labels: { app: `routes-${digest(resources)}` }, resources }),
    );
    assert.equal(exitCode, 0, stdout + stderr);
  };
  const workload = (name: string, replicas: number, env: object[] = []): object => ({
    name,
    containerService: {
      scaling: { replicas },
      podConfig: { terminationGracePeriodSeconds: 5 },
      container: {
        name: "main",
        image: host.image,
        command: ["sh", "-c", APP],
        env: [{ name: "POD", fieldRef: "metadata.name" }, ...env],
        ports: [{ name: "http", containerPort: 8080 }],
        readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
        lifecycle: { preStop: { exec: { command: ["sleep", "2"] } } },
      },
    },
  });

  const ask = (hostname: string, path = "/", ca?: string): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const common = { host: "127.0.0.1", path, agent: false, headers: { host: hostname } };
      const asking =
        ca === undefined
          ? requestPlain({ ...common, port: httpPort })
          : requestTls({ ...common, port: httpsPort, servername: hostname, ca });
      asking.on("response", (answer) => {
        let body = "";
        answer.on("data", (part) => {
          body += part;
        });
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, location: answer.headers.location, body }),
        );
      });
      asking.on("error", reject);
      asking.end();
    });
  const answers = (what: string, hostname: string, test: (answer: Answer) => boolean, path = "/") =>
    waitFor(async () => test(await ask(hostname, path).catch(() => nobody)), {
      ...{ what, limitMs: LIMIT_MS, everyMs: 100 },
      explain: () => readFileSync(system.agent.logPath, "utf8").slice(-2_000),
    });
  const proxies = (): number[] =>
    findProcesses((argv) => argv.some((word) => word.includes(`agent-${host.name}/gateway/`))).map(
      ({ pid }) => pid,
    );

  test(
    "a node becomes a gateway by its label, and serves routes that were applied before",
    LIMIT,
    async () => {
      await apply([
        route("app", {
          hostnames: ["app.example.com"],
          rules: [
            {
              matches: [{ path: { value: "/two" } }],
              backends: [{ service: "two", port: 80 }],
              filters: [prefix("/")],
            },
            { backends: [{ service: "one", port: 80 }] },
          ],
        }),
      ]);
      assert.deepEqual(proxies(), []);
      const { exitCode, stderr } = await system.forage(["node", "label", "n1", "forage.dev/gateway=default"]);
      assert.equal(exitCode, 0, stderr);
      await answers("the route is served", "app.example.com", ({ body }) => body.startsWith("one-"));
      assert.match((await ask("app.example.com", "/two/")).body, /^two-/);
      assert.equal((await ask("other.example.com")).status, 404);
    },
  );

  test("a rolling update behind a route loses no request", LIMIT, async () => {
    let done = false;
    let good = 0;
    const failures: string[] = [];
    const clients = Array.from({ length: 4 }, async () => {
      while (!done) {
        const { status, body } = await ask("app.example.com").catch((error) => ({
          status: 0,
          body: String(error),
        }));
        if (status === 200 && body.startsWith("one-")) good++;
        else failures.push(`${status} ${body}`);
        await delay(10);
      }
    });
    await apply([workload("one", 2, [{ name: "RELEASE", value: "2" }]), service("one")]);
    done = true;
    await Promise.all(clients);
    assert.deepEqual(failures.slice(0, 5), []);
    assert.ok(good > 0);
  });

  test(
    "with a certificate of a secret the host uses TLS, and plain requests are redirected to it",
    LIMIT,
    async () => {
      const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
      const issued = await authority.issueServer({ dnsNames: ["safe.example.com"], ipAddresses: [] });
      const files = { "tls.crt": issued.chainPem, "tls.key": issued.keyPem };
      const given = Object.entries(files).flatMap(([key, text]) => {
        const path = join(host.dir, key);
        writeFileSync(path, text, { mode: 0o600 });
        return ["--from-file", `${key}=${path}`];
      });
      const { exitCode, stderr } = await system.forage(["secret", "set", "safe", "-n", "e2e", ...given]);
      assert.equal(exitCode, 0, stderr);
      await apply([
        route("safe", {
          targetService: "one",
          hostnames: ["safe.example.com"],
          tls: { certificateRef: "safe" },
        }),
      ]);
      await answers("it asks to come back", "safe.example.com", ({ status }) => status === 308, "/x?y");
      const { location } = await ask("safe.example.com", "/x?y");
      assert.equal(location, `https://safe.example.com:${httpsPort}/x?y`);
      const encrypted = await ask("safe.example.com", "/", authority.certPem);
      assert.match(encrypted.body, /^one-/);
    },
  );

  test(
    "routes remain while agent or coordinator are down, and later changes are applied afterwards",
    LIMIT,
    async () => {
      const [pid] = proxies();
      const kept = await openConnection(httpPort);
      await system.agent.kill();
      await system.coordinator.kill();
      assert.equal((await ask("app.example.com")).status, 200);
      system.agent.start();
      await waitFor(() => readFileSync(system.agent.logPath, "utf8").includes("gateway-proxy-found"), {
        ...{ what: "the agent has found the proxy", limitMs: LIMIT_MS },
      });
      assert.deepEqual(proxies(), [pid]);
      assert.equal((await ask("app.example.com")).status, 200);
      system.coordinator.start();
      await waitForReady(system.http, system.coordinator);
      await waitForNode(system);
      await apply([route("late", { targetService: "two", hostnames: ["late.example.com"] })]);
      await answers("the new route is served", "late.example.com", ({ body }) => body.startsWith("two-"));
      assert.equal(kept.destroyed, false);
      kept.destroy();
    },
  );

  test("without its label the node is no longer a gateway", LIMIT, async () => {
    const { exitCode, stderr } = await system.forage(["node", "label", "n1", "forage.dev/gateway-"]);
    assert.equal(exitCode, 0, stderr);
    await waitFor(() => proxies().length === 0, { what: "the proxy is gone", limitMs: LIMIT_MS });
    await assert.rejects(ask("app.example.com"));
  });
});

const nobody: Answer = { status: 0, location: undefined, body: "" };

function service(name: string): object {
  return { name, service: { target: name, ports: [{ name: "http", port: 80, targetPort: 8080 }] } };
}

function route(name: string, spec: object): object {
  return { name, route: spec };
}

function prefix(value: string): object {
  return { urlRewrite: { path: { value } } };
}

function openConnection(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
  });
}

function digest(value: unknown): string {
  return String(
    JSON.stringify(value)
      .split("")
      .reduce((sum, it) => (sum * 31 + it.charCodeAt(0)) % 1_000_003, 7),
  );
}
