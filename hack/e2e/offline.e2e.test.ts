import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { withHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { webManifest } from "../system/manifests.ts";
import { containerIds, getPods, waitForReadyPods } from "../system/pods.ts";
import { startSystem, waitForNode, waitForReady } from "../system/system.ts";

const LIMIT = { timeout: 180_000 };

test("the agent restores everything from its journal without any coordinator", LIMIT, async (t) => {
  const host = await withHost(t);
  const system = await startSystem(host);
  const applied = await system.forage(["apply", "-f", "-"], webManifest({ image: host.image, replicas: 3 }));
  assert.equal(applied.exitCode, 0, applied.stderr);
  const before = await waitForReadyPods(system, 3);
  const ports = before.map((pod) => pod.status?.hostPorts?.[0]?.hostPort);

  await system.coordinator.kill();
  await system.agent.kill();
  await host.nerdctl(["kill", "--signal", "KILL", ...containerIds(before)]);
  system.agent.start();
  for (const port of ports) {
    const answers = async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.ok;
    await waitFor(answers, { what: `host port ${port} answers again`, limitMs: 60_000, everyMs: 50 });
  }

  system.coordinator.start();
  await waitForReady(system.http, system.coordinator);
  await waitForNode(system);
  const after = await waitForReadyPods(system, 3);
  assert.deepEqual(after.map(({ uid }) => uid).sort(), before.map(({ uid }) => uid).sort(), "the same pods");
});

test("an image is pulled from a registry, and nothing remains after the deletion", LIMIT, async (t) => {
  const host = await withHost(t);
  const registry = await host.startRegistry();
  const archive = await buildBusyboxImage({ name: "localhost/forage/pulled:1" });
  const { reference: image } = await registry.pushImage(archive, "team/web:1");
  const system = await startSystem(host);
  const applied = await system.forage(["apply", "-f", "-"], webManifest({ image, replicas: 2 }));
  assert.equal(applied.exitCode, 0, applied.stderr);

  const missing = await system.forage(
    ["apply", "-f", "-"],
    webManifest({ name: "missing", image: image.replace("web:1", "web:2"), replicas: 1 }),
  );
  assert.equal(missing.exitCode, 1, missing.stderr);
  assert.match(missing.stderr, /web:2.*not found/);

  await system.forage(["delete", "--all", "-n", "e2e", "--yes"]);
  await waitFor(async () => (await getPods(system)).length === 0, {
    what: "all pods are gone",
    limitMs: 60_000,
  });
  assert.equal((await host.nerdctl(["ps", "-aq"])).stdout, "");
  const pods = join(host.dir, "agent", "pods");
  assert.deepEqual(existsSync(pods) ? readdirSync(pods) : [], []);
  const shims = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && isShimOf(pid, host.namespace));
  assert.deepEqual(shims, []);
});

function isShimOf(pid: string, namespace: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`-namespace\0${namespace}\0`);
  } catch {
    return false;
  }
}
