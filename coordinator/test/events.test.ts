import assert from "node:assert/strict";
import { test } from "node:test";
import { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import type { Event, WatchEventsResponse } from "@forage/proto/forage/operator/v1/operator";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };

test("reports events of a deployment and its pods in order", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await applyWeb(world);
  await until("its pods are ready", async () => (await reasons(world, "Ready")).length === 2);
  const events = await list(world, { kind: "container_service", name: "web" });
  const words = events.map(({ kind, reason }) => `${kind} ${reason}`);
  assert.equal(words[0], "container_service Created");
  for (const word of ["pod Scheduled", "pod Started", "pod Ready"])
    assert.equal(words.filter((it) => it === word).length, 2, word);
  const sequences = events.map(({ sequence }) => sequence);
  assert.deepEqual(
    sequences,
    [...sequences].sort((a, b) => Number(a - b)),
  );
  const pod = events.find(({ kind }) => kind === "pod");
  assert.deepEqual([pod?.workloadKind, pod?.workloadName], ["container_service", "web"]);
  const [started] = await reasons(world, "Started");
  assert.equal(started?.node, agent.name);
});

test("reports why no node accepts a pod", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { cpu: "10m" });
  await applyWeb(world);
  await until("the events are published", async () => (await reasons(world, "Unschedulable")).length === 2);
  const [event] = await reasons(world, "Unschedulable");
  assert.equal(event?.type, "Warning");
  assert.match(event?.message ?? "", /insufficient cpu/);
});

test("reports crashes with exit code, last lines and count", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await applyWeb(world);
  await until("both run", async () => (await reasons(world, "Ready")).length === 2);
  const [pod] = [...agent.assignments.values()];
  assert.ok(pod);
  const failures = (): Promise<Event[]> => reasons(world, "ContainerFailed");
  for (const run of [1, 2, 3]) {
    const finishedAt = { seconds: BigInt(run), nanos: 0 };
    const ended = { exitCode: 3, reason: "Error", message: "out of beans", finishedAt };
    const running = { $case: "running", value: {} } as const;
    const container = {
      name: "main",
      restartCount: run,
      lastTermination: ended,
      ready: true,
      state: running,
    };
    agent.report(PodStatus.fromPartial({ ...agent.running(pod), containers: [container] }));
    await until(`end ${run}`, async () => (await failures())[0]?.count === run);
  }
  const [event] = await failures();
  assert.equal(event?.message, "container main exited with code 3 (Error); last lines: out of beans");
});

test("streams new events, and resumes after a broken stream", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const first = watch(world, {});
  await until("it has begun", () => first.batches.length > 0);
  await applyWeb(world);
  await until("pods are ready", () => first.reasons().filter((it) => it === "Ready").length === 2);
  first.cancel();
  const after = first.batches[0]?.sequence ?? -1n;
  const second = watch(world, { after });
  await until("everything again", () => second.events().length === first.events().length);
  assert.deepEqual(second.events(), first.events());
  await world.restart();
  const third = watch(world, { after });
  await until("also after a restart", () => third.reasons().filter((it) => it === "Ready").length === 2);
});

test(
  "shows callers only events of their namespaces, and events of nodes only to those who may see all",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    await HollowAgent.start(world);
    await until(
      "the node's event is published",
      async () => (await reasons(world, "NodeJoined", "")).length === 1,
    );
    assert.deepEqual(await list(world, { kind: "node" }), [], "not in a namespace");
    const shop = world.operator(await world.token("viewer", ["shop"]));
    await assert.rejects(shop.listEvents({ ...everything, namespace: "" }), { code: 7 });
    await assert.rejects(shop.listEvents({ ...everything, namespace: "other" }), { code: 7 });
    await shop.listEvents({ ...everything, namespace: "shop" });
    await assert.rejects(world.operator("").listEvents({ ...everything, namespace: "shop" }), { code: 16 });
    const filter = { ...noFilter, type: "Odd" };
    await assert.rejects(shop.listEvents({ ...everything, filter }), { code: 3 });
    await assert.rejects(shop.listEvents({ ...everything, limit: 10_001 }), { code: 3 });
  },
);

test("returns the newest events when there are more than requested", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  await applyWeb(world);
  await until("pods are ready", async () => (await reasons(world, "Ready")).length === 2);
  const all = await list(world, {});
  const { events } = await world.operator().listEvents({ ...everything, limit: 3 });
  assert.deepEqual(events, all.slice(-3));
});

test("serves events over HTTP as JSON, and as a stream that resumes", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const token = await world.token("viewer", ["shop"]);
  const headers = { authorization: `Bearer ${token}` };
  const url = `http://127.0.0.1:${world.coordinator.http.port}/api/v1/namespaces/shop/events`;
  await applyWeb(world);
  await until("pods are ready", async () => (await reasons(world, "Ready")).length === 2);
  const listed = (await (await fetch(`${url}?kind=pod&reason=Ready`, { headers })).json()) as Json;
  assert.deepEqual(
    listed.items.map(({ reason, kind, type }) => [reason, kind, type]),
    [
      ["Ready", "pod", "Normal"],
      ["Ready", "pod", "Normal"],
    ],
  );
  const stream = await readStream(url, { ...headers, "last-event-id": "0" }, (text) =>
    text.includes('"Ready"'),
  );
  assert.match(stream, /^retry: 2000\n\n/);
  const ids = [...stream.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  assert.deepEqual(
    ids,
    [...ids].sort((a, b) => a - b),
  );
  const rest = await readStream(url, { ...headers, "last-event-id": String(ids.at(-1)) }, (text) =>
    text.includes("\nid: "),
  );
  assert.doesNotMatch(rest, /event: event/, "no event is sent twice");
  for (const [path, status] of [
    [url.replace("/shop/", "/other/"), 403],
    [`http://127.0.0.1:${world.coordinator.http.port}/api/v1/events`, 403],
    [`${url}?type=Odd`, 400],
    [`${url}?after=x`, 400],
    [`${url}?since=yesterday`, 400],
  ] as const)
    assert.equal((await fetch(path, { headers })).status, status, path);
  const streaming = { ...headers, accept: "text/event-stream" };
  for (let count = 0; count < 65; count++) {
    const leaving = new AbortController();
    await fetch(url, { headers: streaming, signal: leaving.signal });
    leaving.abort();
  }
  await until("the streams that are over have made room", async () => {
    const leaving = new AbortController();
    const { status } = await fetch(url, { headers: streaming, signal: leaving.signal });
    leaving.abort();
    return status === 200;
  });
  assert.equal((await fetch(url)).status, 401);
  assert.equal((await fetch(url, { headers: { accept: "text/event-stream" } })).status, 401);
});

interface Json {
  readonly items: readonly Record<string, unknown>[];
}

const noFilter = { kind: "", name: "", type: "", reason: "", since: undefined };
const everything = { namespace: "shop", filter: undefined, after: 0n, limit: 0 };

async function applyWeb(world: World): Promise<void> {
  await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
}

async function list(world: World, filter: Partial<typeof noFilter>, namespace = "shop"): Promise<Event[]> {
  const request = { namespace, filter: { ...noFilter, ...filter }, after: 0n, limit: 0 };
  return (await world.operator().listEvents(request)).events;
}

function reasons(world: World, reason: string, namespace = "shop"): Promise<Event[]> {
  return list(world, { reason }, namespace);
}

function watch(world: World, { after }: { readonly after?: bigint }) {
  const stream = world.operator().watchEvents({ namespace: "shop", filter: undefined, after });
  const batches: WatchEventsResponse[] = [];
  stream.on("data", (batch: WatchEventsResponse) => batches.push(batch));
  stream.on("error", () => {});
  world.atEnd(() => stream.cancel());
  const events = (): Event[] => batches.flatMap((batch) => batch.events);
  return {
    batches,
    events,
    reasons: () => events().map(({ reason }) => reason),
    cancel: () => stream.cancel(),
  };
}

/** Reads until the condition holds, and disconnects. */
async function readStream(
  url: string,
  headers: Readonly<Record<string, string>>,
  enough: (text: string) => boolean,
): Promise<string> {
  const response = await fetch(url, { headers: { ...headers, accept: "text/event-stream" } });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (enough(text)) break;
  }
  return text;
}
