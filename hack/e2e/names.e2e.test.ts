import assert from "node:assert/strict";
import { Resolver } from "node:dns/promises";
import { after, before, describe, test } from "node:test";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { waitForReadyPods } from "../system/pods.ts";
import { type System, startSystem, waitForReady } from "../system/system.ts";

const LIMIT = { timeout: 180_000 };
const LIMIT_MS = 60_000;

/** Serves its own name to every client on port 8080. */
/** `get HOST PORT` requests a page with nc, because busybox's statically linked wget fails to resolve names. */
const GET = `get() { printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 $1 $2 | tail -n 1; }; `;
const APP = "mkdir -p /tmp/www && echo $POD > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www";

describe("services by name and address with real containers", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let client: string;
  let clientContainer: string;
  let webIp: string;

  before(async () => {
    host = await startTestHost();
    system = await startSystem(host);
    await apply([
      workload("web", 2, APP),
      workload("client", 1, "exec sleep 100000"),
      service("web", {}),
      service("pods", { target: "web", type: "Headless" }),
      service("sticky", { target: "web", sessionAffinity: "ClientIP" }),
      service("open", { target: "web", type: "NodePort" }),
      service("later", { target: "not-yet" }),
    ]);
    const pods = await waitForReadyPods(system, 3);
    const found = pods.find(({ name }) => name.startsWith("client"));
    client = found?.name ?? "";
    clientContainer = found?.status?.containers?.[0]?.containerId ?? "";
    let said = "";
    const answered = async (): Promise<boolean> => {
      const { stdout, stderr } = await inClient(
        "cat /etc/resolv.conf; nslookup web.e2e.svc.cluster.local; get web 80",
      );
      said = stdout + stderr;
      return stdout.includes("web-");
    };
    await waitFor(answered, {
      what: "the service answers by its name",
      limitMs: LIMIT_MS,
      everyMs: 500,
      explain: () => said,
    });
    const services = await system.ask<{ name: string; virtualIps?: string[] }[]>([
      "get",
      "services",
      "-n",
      "e2e",
    ]);
    webIp = services.find(({ name }) => name === "web")?.virtualIps?.[0] ?? "";
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  test("a pod reaches a service by its short and its full name, and all its pods", LIMIT, async () => {
    for (const name of ["web", "web.e2e", "web.e2e.svc", "web.e2e.svc.cluster.local"]) {
      const { stdout, stderr } = await inClient(`get ${name} 80`);
      assert.match(stdout, /^web-/, `${name}: ${stderr}`);
    }
    assert.equal((await answers("web", 40)).size, 2);
  });

  test("a headless service resolves to its pods, each by its own name", LIMIT, async () => {
    const { stdout } = await inClient("nslookup pods.e2e.svc.cluster.local");
    const addresses = new Set(
      [...stdout.matchAll(/^Address:?.*?(\d+\.\d+\.\d+\.\d+)$/gm)].map(([, ip]) => ip),
    );
    const pods = (await waitForReadyPods(system, 3)).filter(({ name }) => name.startsWith("web"));
    for (const { name, status } of pods) {
      assert.ok(addresses.has(status?.podIp), `${status?.podIp} in ${stdout}`);
      assert.equal((await inClient(`get ${name}.pods 8080`)).stdout.trim(), name);
    }
  });

  test("with affinity a client stays with one pod", LIMIT, async () => {
    assert.equal((await answers("sticky", 20)).size, 1);
  });

  test("a node port is open on the host", LIMIT, async () => {
    const nodePort = await nodePortOf("open");
    const { stdout } = await inClient(`get $NODE ${nodePort}`);
    assert.match(stdout, /^web-/);
    assert.match(await (await fetch(`http://127.0.0.1:${nodePort}/`)).text(), /^web-/);
  });

  test("a missing name and a name without such records have different answers", LIMIT, async () => {
    assert.match((await inClient("nslookup gone.e2e.svc.cluster.local")).stdout, /NXDOMAIN/);
    const { exitCode, stderr } = await inClient("nc -w 5 later 80 < /dev/null");
    assert.equal(exitCode, 1);
    assert.match(stderr, /refused/);
  });

  test("a service whose target is created later works as soon as the target exists", LIMIT, async () => {
    await apply([workload("not-yet", 1, APP)]);
    await waitFor(async () => (await inClient("get later 80")).stdout.startsWith("not-yet-"), {
      what: "the service serves",
      limitMs: LIMIT_MS,
    });
  });

  test(
    "names and addresses continue without the coordinator, and after a restart of the agent",
    LIMIT,
    async () => {
      await system.coordinator.kill();
      assert.match((await inContainer("get web 80")).stdout, /^web-/);
      await system.agent.kill();
      assert.match((await inContainer("get $WEB_IP 80")).stdout, /^web-/, "the kernel leads on by itself");
      system.agent.start();
      await waitFor(async () => /^web-/.test((await inContainer("get web 80")).stdout), {
        what: "names are answered from disk",
        limitMs: LIMIT_MS,
      });
      system.coordinator.start();
      await waitForReady(system.http, system.coordinator);
      // Its node counts as ready before the agent has reconnected, so this waits for the connection.
      await waitFor(async () => (await inClient("true")).exitCode === 0, {
        what: "the agent is back",
        limitMs: LIMIT_MS,
      });
      assert.match((await inClient("get web 80")).stdout, /^web-/, "nothing was lost on the way");
    },
  );

  test("names are resolved again soon after the agent was killed", LIMIT, async (t) => {
    const { stdout } = await inClient("sed -n 's/^nameserver //p' /etc/resolv.conf");
    const resolver = new Resolver({ timeout: 100, tries: 1 });
    resolver.setServers([stdout.trim()]);
    const answered = () =>
      resolver.resolve4("web.e2e.svc.cluster.local").then(
        (addresses) => addresses[0] === webIp,
        () => false,
      );
    await waitFor(answered, { what: "it answers", limitMs: LIMIT_MS });
    await system.agent.kill();
    const killedMs = performance.now();
    system.agent.start();
    await waitFor(answered, { what: "it answers again", limitMs: LIMIT_MS, everyMs: 10 });
    t.diagnostic(`names were away for ${Math.round(performance.now() - killedMs)} ms`);
  });

  async function apply(resources: readonly object[]): Promise<void> {
    const { exitCode, stderr } = await system.forage(
      ["apply", "-f", "-"],
      JSON.stringify({ namespace: "e2e", resources }),
    );
    assert.equal(exitCode, 0, stderr);
  }

  function inClient(script: string) {
    const host = "NODE=$(ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'); ";
    return system.forage(["exec", client, "-n", "e2e", "--", "sh", "-c", host + GET + script]);
  }

  /** Runs a script by nerdctl, because the coordinator is down. */
  async function inContainer(script: string) {
    const setUp = `WEB_IP=${webIp}; ${GET}`;
    return host.nerdctl(["exec", clientContainer, "sh", "-c", setUp + script], { allowFailure: true });
  }

  async function answers(name: string, times: number): Promise<ReadonlySet<string>> {
    const script = `i=0; while [ $i -lt ${times} ]; do get ${name} 80; i=$((i+1)); done`;
    const found = new Set((await inClient(script)).stdout.trim().split("\n"));
    for (const answer of found) assert.match(answer, /^web-/);
    return found;
  }

  async function nodePortOf(name: string): Promise<number> {
    const found = await system.ask<{ name: string; nodePorts?: { nodePort: number }[] }[]>([
      "get",
      "services",
      "-n",
      "e2e",
    ]);
    return found.find((it) => it.name === name)?.nodePorts?.[0]?.nodePort ?? 0;
  }
});

function workload(name: string, replicas: number, script: string): object {
  return {
    name,
    containerService: {
      scaling: { replicas },
      podConfig: { terminationGracePeriodSeconds: 1 },
      container: {
        name: "main",
        image: "localhost/forage/busybox:1",
        command: ["sh", "-c", script],
        env: [{ name: "POD", fieldRef: "metadata.name" }],
        ports: [{ name: "http", containerPort: 8080 }],
        resources: { requests: { cpu: "10m", memory: "16Mi" } },
      },
    },
  };
}

function service(name: string, spec: object): object {
  return { name, service: { target: name, ports: [{ name: "http", port: 80, targetPort: 8080 }], ...spec } };
}
