import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { getPods, type PodJson } from "../system/pods.ts";
import { type System, startSystem } from "../system/system.ts";

const LIMIT = { timeout: 240_000 };
const WAIT_MS = 90_000;

interface UsedJson {
  readonly name: string;
  readonly usage?: { readonly cpuMilli?: string; readonly memoryBytes?: string };
}

/** Uses all the CPU that it may while a file exists, and hardly any otherwise. */
const BURNER =
  "while :; do if [ -e /tmp/burn ]; then i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done; else sleep 1; fi; done";
const METRICS_SERVER =
  "mkdir /tmp/www; echo 'queue_depth{of=\"a\"} 5' > /tmp/www/metrics; exec httpd -f -p 8080 -h /tmp/www";

interface Autoscaling {
  readonly currentReplicas?: number;
  readonly lastScaleReason?: string;
  readonly metrics?: readonly { readonly name?: string; readonly value?: string }[];
}

describe("autoscaling of real containers", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;

  before(async () => {
    host = await startTestHost();
    system = await startSystem(host, { coordinator: { autoscaling: { intervalSeconds: 2 } } });
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  test("cpu: scales up under load, and down without it", LIMIT, async () => {
    await apply("burner", BURNER, { targetCpuUtilizationPercent: 50 });
    const [first] = await podsOf("burner", (count) => count === 1);
    await inPod(first, "touch /tmp/burn");
    await podsOf("burner", (count) => count >= 2);
    const { resource } = await system.ask<{ resource: { autoscaling?: Autoscaling } }>([
      ...["describe", "container_service/burner", "-n", "e2e"],
    ]);
    assert.match(resource.autoscaling?.lastScaleReason ?? "", /cpu is at \d+% of requests, target 50%/);
    await inPod(first, "rm /tmp/burn");
    await podsOf("burner", (count) => count === 1);
  });

  test("a pushed value: runs as many pods as share the value", LIMIT, async () => {
    const customMetrics = [{ name: "orders", targetType: "AverageValue", targetValue: "10" }];
    await apply("worker", "exec sleep 100000", { customMetrics });
    await podsOf("worker", (count) => count === 1);
    await push("orders", 25);
    await podsOf("worker", (count) => count === 3);
    await push("orders", 3);
    await podsOf("worker", (count) => count === 1);
  });

  test("scales by the mean of metrics that pods push", LIMIT, async () => {
    const customMetrics = [{ name: "queue_depth", targetType: "AverageValue", targetValue: "10" }];
    await apply("teller", METRICS_SERVER, { customMetrics }, { "forage.dev/metrics-port": "8080" });
    const [first] = await podsOf("teller", (count) => count === 1);
    await inPod(first, "echo 'queue_depth{of=\"b\"} 25' >> /tmp/www/metrics");
    await podsOf("teller", (count) => count === 3);
    await inPod(first, "echo 'queue_depth 1' > /tmp/www/metrics");
    await podsOf("teller", (count) => count === 1);
  });

  test("top shows the usage of pods that are not scaled, and of the host", LIMIT, async () => {
    const [pod] = await podsOf("worker", (count) => count === 1);
    await inPod(pod, "(timeout 30 sh -c 'while :; do :; done' >/dev/null 2>&1 &)");
    await waitFor(
      async () => {
        const pods = await system.ask<UsedJson[]>(["top", "pods", "-n", "e2e"]);
        const usage = pods.find(({ name }) => name === pod?.name)?.usage;
        return Number(usage?.cpuMilli ?? 0) > 20 && Number(usage?.memoryBytes ?? 0) > 0;
      },
      { what: "the busy pod's usage is shown", limitMs: WAIT_MS, everyMs: 500 },
    );
    const nodes = await system.ask<UsedJson[]>(["top", "nodes"]);
    assert.ok(Number(nodes[0]?.usage?.memoryBytes ?? 0) > 0, JSON.stringify(nodes));
  });

  async function apply(
    name: string,
    script: string,
    policy: object,
    annotations: object = {},
  ): Promise<void> {
    const autoscaling = { maxReplicas: 3, scaleDownStabilization: "3s", ...policy };
    const container = {
      name: "main",
      image: host.image,
      command: ["sh", "-c", script],
      ports: [{ name: "http", containerPort: 8080 }],
      resources: { requests: { cpu: "100m", memory: "16Mi" }, limits: { cpu: "200m", memory: "64Mi" } },
    };
    const podConfig = { terminationGracePeriodSeconds: 1, annotations };
    const containerService = { scaling: { replicas: 1, autoscaling }, podConfig, container };
    const bundle = { namespace: "e2e", labels: { app: name }, resources: [{ name, containerService }] };
    const { exitCode, stderr } = await system.forage(["apply", "-f", "-"], JSON.stringify(bundle));
    assert.equal(exitCode, 0, stderr);
  }

  /** Waits until the service has enough pods, all ready and none stopping. */
  async function podsOf(name: string, enough: (count: number) => boolean): Promise<PodJson[]> {
    let seen: PodJson[] = [];
    await waitFor(
      async () => {
        seen = (await getPods(system)).filter((pod) => pod.name.startsWith(`${name}-`));
        return enough(seen.length) && seen.every(({ status }) => status?.ready === true);
      },
      {
        what: `${name} has as many pods as it should`,
        limitMs: WAIT_MS,
        everyMs: 500,
        explain: () =>
          `${JSON.stringify(seen)}\n${readFileSync(system.coordinator.logPath, "utf8").slice(-3000)}`,
      },
    );
    return seen;
  }

  async function inPod(pod: PodJson | undefined, script: string): Promise<void> {
    const { exitCode, stderr } = await system.forage([
      ...["exec", pod?.name ?? "", "-n", "e2e", "--", "sh", "-c", script],
    ]);
    assert.equal(exitCode, 0, stderr);
  }

  async function push(name: string, value: number): Promise<void> {
    const token = readFileSync(system.tokenFile, "utf8").trim();
    const response = await fetch(`http://${system.http}/api/v1/namespaces/e2e/metrics/${name}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ value, ttlSeconds: 600 }),
    });
    assert.equal(response.status, 200, await response.text());
  }
});
