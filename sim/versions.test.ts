import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LogOptions } from "@forage/proto/forage/agent/v1/agent";
import {
  DrainNodeRequest,
  ExecRequest,
  type ExecResponse,
  type LogsResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { HostOfFakes } from "../agent/test/host-of-fakes.ts";
import { aContainerService, aRequest, watchToEnd } from "../coordinator/test/support/requests.ts";
import { collected, until } from "../coordinator/test/support/until.ts";
import { startWorld, type World } from "../coordinator/test/support/world.ts";
import { buildRegistry } from "../proto/test/descriptor.ts";
import { readPreviousWire } from "../proto/test/wire-file.ts";
import { WireFilter } from "../proto/test/wire-filter.ts";
import { VersionRelay } from "./version-relay.ts";

const NOTHING = Buffer.alloc(0);
const LIMIT = { timeout: 240_000 };
const IMAGE = "localhost/forage/busybox:1";
const IN_SHOP = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };
const IMAGE_REMOVE = "forage.agent.v1.SessionRequest 11";
const UNKNOWN_IMAGE = { node: "node-1", namespace: "", image: "localhost/none:1" };

test(
  "an agent and a coordinator that are one version apart work together, and upgrades restart no container",
  LIMIT,
  async (t) => {
    const scene = await aScene(t);
    const { world, relay, host } = scene;
    const previous = new WireFilter(scene.registry, await readPreviousWire());
    relay.filter = previous;
    const first = await host.start();
    await until("the node has joined and is ready", () => isReady(world));

    await deploy(world, "v1");
    await deploy(world, "v2");
    assert.equal(await exec(world), "hello\n");
    await writeLogs(host);
    assert.equal(await logs(world), "a line\n");
    const running = containersOf(host);
    assert.equal(running.length, 2);
    await assert.rejects(world.operator().removeImage(UNKNOWN_IMAGE));
    assert.ok(previous.dropped.has(IMAGE_REMOVE), [...previous.dropped].join());

    await first.agent.close();
    await host.start();
    await until("the next agent serves", () => canExec(world));
    assert.deepEqual(containersOf(host), running, "a restart of the agent");
    for (const [what, filter] of [
      ["an upgrade", undefined],
      ["a downgrade", previous],
      ["another upgrade", undefined],
    ] as const) {
      const { connects } = relay;
      relay.filter = filter;
      relay.cut();
      await until("the agent has connected again", () => relay.connects > connects);
      await until("the agent serves", () => canExec(world));
      assert.deepEqual(containersOf(host), running, what);
      const removed = world.operator().removeImage(UNKNOWN_IMAGE);
      if (filter === undefined) assert.equal((await removed).absent, true);
      else await assert.rejects(removed);
    }

    relay.filter = previous;
    relay.cut();
    const drain = DrainNodeRequest.fromPartial({ name: "node-1", force: true });
    await world.operator().drainNode(drain);
    await until("the drained node has stopped its containers", () => containersOf(host).length === 0);
  },
);

async function aScene(t: TestContext) {
  const rollout = { progressDeadlineSeconds: 86_400, placementDeadlineSeconds: 86_400, stableSeconds: 0 };
  const world = await startWorld(t, {}, { rollout, heartbeatIntervalSeconds: 5 });
  const dir = await mkdtemp(join(tmpdir(), "forage-versions-"));
  const dataDir = join(dir, "data");
  const registry = await buildRegistry();
  const relay = await VersionRelay.start(t, { world, registry, identityDir: join(dataDir, "identity") });
  const joinTokenFile = join(dir, "token");
  const asked = { ttlSeconds: 0, nodeName: "", reusable: false, labels: {}, taints: [] };
  await writeFile(joinTokenFile, (await world.operator().createJoinToken(asked)).token, { mode: 0o600 });
  const settings = { coordinator: relay.address, "join-token-file": joinTokenFile };
  const host = await HostOfFakes.make(t, { dir, settings });
  host.runtime.execs.set("greet", { stdout: "hello\n" });
  return { world, registry, relay, host };
}

async function isReady(world: World): Promise<boolean> {
  return (await world.operator().listNodes({})).nodes[0]?.ready ?? false;
}

/** Deploys two replicas with a probe, and waits until they are ready. */
async function deploy(world: World, version: string): Promise<void> {
  const container = {
    ...{ name: "main", image: IMAGE, args: [version] },
    probes: {
      readiness: { periodSeconds: 1, handler: { $case: "httpGet", value: { port: 8080, path: "/" } } },
    },
  };
  const request = aRequest(version, [aContainerService("web", { container })]);
  const { rolloutId } = await world.forage().applyResources(request);
  const lines = await watchToEnd(world, rolloutId);
  assert.match(lines.at(-1) ?? "", /SUCCEEDED 2\/2 ready/);
  await until("earlier pods are gone", async () => {
    return (await world.operator().listPods(IN_SHOP)).pods.length === 2;
  });
}

async function exec(world: World): Promise<string> {
  const call = world.operator().exec();
  const options = { command: ["greet"] };
  const start = { namespace: "shop", pod: await aPod(world), container: "main", options };
  call.write(ExecRequest.fromPartial({ frame: { $case: "start", value: start } }));
  const frames = await collected<ExecResponse>(call);
  return textOf(frames.map(({ frame }) => (frame?.$case === "stdout" ? frame.value : NOTHING)));
}

async function logs(world: World): Promise<string> {
  const options = LogOptions.fromPartial({ tailLines: 1 });
  const request = { namespace: "shop", pod: await aPod(world), container: "main", options };
  const responses = await collected<LogsResponse>(world.operator().logs(request));
  return textOf(responses.map(({ data }) => data));
}

function textOf(parts: readonly Uint8Array[]): string {
  return Buffer.concat(parts).toString();
}

async function canExec(world: World): Promise<boolean> {
  return exec(world).then(
    (text) => text === "hello\n",
    () => false,
  );
}

async function aPod(world: World): Promise<string> {
  const { pods } = await world.operator().listPods(IN_SHOP);
  return pods.find(({ status }) => status?.ready)?.name ?? "";
}

/** Writes a line to the log of each container. */
async function writeLogs(host: HostOfFakes): Promise<void> {
  const paths = (await host.files()).filter((path) => path.startsWith("pods/") && path.endsWith(".log"));
  for (const path of paths) await writeFile(join(host.dataDir, path), "a line\n");
}

function containersOf(host: HostOfFakes) {
  return host.runtime.containers.map(({ id, pid }) => ({ id, pid }));
}
