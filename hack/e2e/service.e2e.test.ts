import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { webManifest } from "../system/manifests.ts";
import { containerIds, getPods, restarts, waitForReadyPods } from "../system/pods.ts";
import { type System, startSystem, waitForNode, waitForReady } from "../system/system.ts";

const LIMIT = { timeout: 180_000 };

describe("a real service on a real host", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;

  before(async () => {
    host = await startTestHost();
    system = await startSystem(host, {
      // One test shows that a first restart does not wait for the back-off.
      agent: { restart: { backOffBaseSeconds: 10 } },
      coordinator: { rollout: { placementDeadlineSeconds: 2 } },
    });
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  test("a manifest is applied, containers run, and the look-up returns their addresses", LIMIT, async () => {
    const { exitCode, stderr } = await system.forage(
      ["apply", "-f", "-"],
      webManifest({ image: host.image }),
    );
    assert.equal(exitCode, 0, stderr);
    await waitForReadyPods(system, 2);
    const endpoints = await system.ask<{ address: string; port: number }[]>([
      "get",
      "endpoints",
      "-n",
      "e2e",
    ]);
    assert.equal(endpoints.length, 2);
    for (const { address, port } of endpoints) {
      assert.equal((await (await fetch(`http://${address}:${port}/`)).text()).trim(), "hello");
    }
  });

  test("an image is run without a manifest, answers, and is removed by its label", LIMIT, async () => {
    const script = "echo quick > /tmp/index.html; exec httpd -f -p 8080 -h /tmp";
    const flags = ["--name", "quick", "-p", "80:8080", "--health", "/index.html", "--command", "sh"];
    const quick = ["run", host.image, "-n", "e2e", ...flags, "--", "-c", script];
    const { exitCode, stdout, stderr } = await system.forage(quick);
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /quick\.e2e:80 +in pods, by name/);
    const [endpoint] = await system.ask<{ address: string; port: number }[]>([
      "get",
      "endpoints",
      "quick",
      "-n",
      "e2e",
    ]);
    const answer = await fetch(`http://${endpoint?.address}:${endpoint?.port}/`);
    assert.equal((await answer.text()).trim(), "quick");
    const scaled = await system.forage(["scale", "container_service/quick", "2", "-n", "e2e"]);
    assert.equal(scaled.exitCode, 0, scaled.stderr);
    const manifest = await system.forage([...quick.slice(0, -3), "--dry-run", ...quick.slice(-3)]);
    const difference = await system.forage(["diff", "-f", "-"], manifest.stdout);
    assert.equal(difference.exitCode, 1, difference.stderr);
    assert.match(difference.stdout, /^- .*scaling\.replicas: "2"\n\+ .*scaling\.replicas: "1"$/m);
    const removed = await system.forage(["delete", "-l", "run=quick", "--wait", "-n", "e2e"]);
    assert.equal(removed.exitCode, 0, removed.stderr);
  });

  test("logs and exec work with the pods, with the command's own exit code", LIMIT, async () => {
    const [pod] = await getPods(system);
    const name = pod?.name ?? "";
    const exec = await system.forage([
      "exec",
      name,
      "-n",
      "e2e",
      "--",
      "sh",
      "-c",
      "echo out; echo err >&2; exit 7",
    ]);
    assert.deepEqual([exec.stdout, exec.exitCode], ["out\n", 7], exec.stderr);
    assert.match(exec.stderr, /err/);
    const piped = await system.forage(["exec", "-i", name, "-n", "e2e", "--", "cat"], "through and back");
    assert.equal(piped.stdout, "through and back");
    const logs = await system.forage(["logs", name, "-n", "e2e", "--tail", "1"]);
    assert.deepEqual([logs.stdout, logs.exitCode], ["serving hello\n", 0], logs.stderr);
  });

  test("the agent's metrics contain each container's usage", LIMIT, async () => {
    const metrics = await (await fetch(`http://${system.agentHttp}/metrics`)).text();
    const memory = [...metrics.matchAll(/^forage_container_memory_working_set_bytes\{.*\} (\d+)$/gm)].map(
      (m) => Number(m[1]),
    );
    assert.equal(memory.length, 2, metrics);
    for (const bytes of memory) assert.ok(bytes > 4096 && bytes < 64 * 1024 * 1024, `${bytes}`);
  });

  test("kill -9 of the agent: containers continue to run and are adopted", LIMIT, async () => {
    const before = containerIds(await waitForReadyPods(system, 2));
    await system.agent.kill();
    system.agent.start();
    await waitForNode(system);
    const pods = await waitForReadyPods(system, 2);
    assert.deepEqual(containerIds(pods), before);
    assert.equal(restarts(pods), 0);
  });

  test("kill -9 of the coordinator: nothing changes, and it answers as before", LIMIT, async () => {
    const before = containerIds(await getPods(system));
    await system.coordinator.kill();
    system.coordinator.start();
    await waitForReady(system.http, system.coordinator);
    const endpoints = await system.ask<unknown[]>(["get", "endpoints", "-n", "e2e"]);
    assert.equal(endpoints.length, 2, "endpoints are known before the node is back");
    await waitForNode(system);
    const pods = await waitForReadyPods(system, 2);
    assert.deepEqual(containerIds(pods), before);
    assert.equal(restarts(pods), 0);
  });

  test("kill -9 of both in the middle of a rollout: it completes", LIMIT, async () => {
    const manifest = webManifest({ image: host.image, replicas: 4, env: { GREETING: "second" } });
    const { stdout, exitCode, stderr } = await system.forage(
      ["apply", "--detach", "-o", "json", "-f", "-"],
      manifest,
    );
    assert.equal(exitCode, 0, stderr);
    const rolloutId = JSON.parse(stdout) as { rolloutId: string }[] | { rolloutId: string };
    const id = Array.isArray(rolloutId) ? rolloutId[0]?.rolloutId : rolloutId.rolloutId;
    await Promise.all([system.agent.kill(), system.coordinator.kill()]);
    system.coordinator.start();
    system.agent.start();
    await waitForReady(system.http, system.coordinator);
    const followed = await system.forage(["rollout", "status", id ?? "", "--watch", "-n", "e2e"]);
    assert.equal(followed.exitCode, 0, followed.stderr + followed.stdout);
    const pods = await waitForReadyPods(system, 4);
    const [port] = pods[0]?.status?.hostPorts ?? [];
    assert.equal((await (await fetch(`http://127.0.0.1:${port?.hostPort}/`)).text()).trim(), "second");
  });

  test("a killed container is running again before the first back-off would have ended", LIMIT, async () => {
    const pods = await waitForReadyPods(system, 4);
    const [id = ""] = containerIds(pods.slice(0, 1));
    await host.nerdctl(["kill", "--signal", "KILL", id]);
    await waitFor(async () => restarts(await getPods(system)) === 1, {
      what: "the restart is reported",
      limitMs: 90_000,
    });
    const ready = await waitForReadyPods(system, 4);
    const restarted = ready
      .flatMap(({ status }) => status?.containers ?? [])
      .find((it) => it.restartCount === 1);
    const gapMs =
      Date.parse(restarted?.running?.startedAt ?? "") -
      Date.parse(restarted?.lastTermination?.finishedAt ?? "");
    // These are the agent's own times. A start after the first back-off would be after 10 s.
    assert.ok(gapMs < 10_000, `it ran again after ${gapMs} ms: ${JSON.stringify(restarted)}`);
  });

  test("a service on a port that no container declares reaches the running container", LIMIT, async () => {
    const manifest = JSON.parse(webManifest({ name: "plain", image: host.image, replicas: 1 }));
    const [workload, service] = manifest.resources;
    workload.containerService.container.ports = [];
    const apply = (...resources: unknown[]) =>
      system.forage(["apply", "-f", "-"], JSON.stringify({ ...manifest, resources }));
    const alone = await apply(workload);
    assert.equal(alone.exitCode, 0, alone.stderr);
    const plain = async () => (await getPods(system)).filter(({ name }) => name.startsWith("plain"));
    const before = containerIds(await plain());
    assert.equal(before.length, 1);

    const { exitCode, stderr } = await apply(workload, service);

    assert.equal(exitCode, 0, stderr);
    const [pod] = await plain();
    const port = pod?.status?.hostPorts?.find(({ containerPort }) => containerPort === 8080);
    assert.equal((await (await fetch(`http://127.0.0.1:${port?.hostPort}/`)).text()).trim(), "hello");
    assert.deepEqual(containerIds(await plain()), before, "the container goes on");
    await system.forage(["delete", "-n", "e2e", "-l", "app=plain"]);
  });

  test("an image that doesn't exist fails the rollout with exit code 1 and the cause", LIMIT, async () => {
    const image = "localhost:1/nothing/here:1";
    const manifest = webManifest({ name: "bad", image, replicas: 1 });
    const { exitCode, stderr } = await system.forage(["apply", "-f", "-", "--timeout", "8s"], manifest);
    assert.ok(exitCode === 4 || exitCode === 1, `${exitCode} ${stderr}`);
    assert.match(stderr, /nothing\/here/);
    await system.forage(["delete", "-n", "e2e", "-l", "app=bad"]);
  });

  test("a crash is reported with exit code and last lines", LIMIT, async () => {
    const command = ["sh", "-c", "echo the disk is on fire; exit 3"];
    const manifest = webManifest({ name: "crash", image: host.image, replicas: 1, command });
    const { exitCode, stderr } = await system.forage(["apply", "-f", "-"], manifest);
    assert.equal(exitCode, 1, stderr);
    assert.match(stderr, /code 3/);
    assert.match(stderr, /the disk is on fire/);
    await system.forage(["delete", "-n", "e2e", "-l", "app=crash"]);
  });

  test("an unschedulable service is explained, with exit code 2", LIMIT, async () => {
    const manifest = webManifest({ name: "big", image: host.image, replicas: 1, cpu: "500" });
    const { exitCode, stderr } = await system.forage(["apply", "-f", "-"], manifest);
    assert.equal(exitCode, 2, stderr);
    assert.match(stderr, /0\/1 nodes: 1 insufficient cpu/);
  });

  test("deleting everything leaves nothing on the host", LIMIT, async () => {
    const { exitCode, stderr } = await system.forage(["delete", "--all", "-n", "e2e", "--yes"]);
    assert.equal(exitCode, 0, stderr);
    await waitFor(async () => (await getPods(system)).length === 0, {
      what: "all pods are gone",
      limitMs: 60_000,
    });
    const containers = await host.nerdctl(["ps", "-aq"]);
    assert.equal(containers.stdout.trim(), "");
    await system.agent.stop();
    const remains = await host.networkRemains();
    assert.deepEqual(remains.leases, []);
  });
});
