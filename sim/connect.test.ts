import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { nodeId } from "@forage/identity";
import { type ConnectRequest, type ConnectResponse, Hello } from "@forage/proto/forage/agent/v1/agent";
import { assignmentRevision } from "../coordinator/src/link/assignment-revision.ts";
import { connect } from "../coordinator/src/link/connect.ts";
import type { NodeOptions } from "./fleet/fleet-node.ts";
import { makeSecrets } from "./fleet/sim-coordinator.ts";
import { simTime } from "./fleet/sim-time.ts";
import { Trace } from "./fleet/trace.ts";
import { World } from "./fleet/world.ts";
import { RealNode } from "./real-node.ts";

test("a node is sent addresses of coordinators that change while its stream begins", async (t) => {
  const { world, node } = await start(t);
  const { time } = world;
  // The test's own connection replaces the node's.
  node.crash();
  let addresses = ["a:1"];
  const coordinators = { addresses: () => addresses, onAddresses: () => () => {} };
  const over = new AbortController();
  const caller = { type: "node", nodeId: nodeId(node.name) } as const;
  const context = { method: "", caller, peer: "n:1", signal: over.signal };
  const options = { ...world.coordinator.core.services.connect, coordinators };
  const messages = connect(hello(over.signal), context, options);
  const next = async (): Promise<ConnectResponse> => {
    const answer = messages.next();
    await time.run(500);
    const { value } = await answer;
    assert.ok(value !== undefined && !Buffer.isBuffer(value));
    return value as ConnectResponse;
  };
  const first = await next();
  assert.deepEqual(first.message?.$case === "welcome" && first.message.value.coordinators?.addresses, [
    "a:1",
  ]);
  addresses = ["b:1"];
  const later: (readonly string[])[] = [];
  for (let count = 0; count < 3 && later.length === 0; count++) {
    const { message } = await next();
    if (message?.$case === "coordinators") later.push(message.value.addresses);
  }
  assert.deepEqual(later, [["b:1"]]);
  over.abort();
});

test("a heartbeat is answered on request, also while the node is sent no assignments", async (t) => {
  const { world, node } = await start(t);
  const { time } = world;
  node.crash();
  const { connect: options } = world.coordinator.core.services;
  const { history } = options;
  const gate = { isOver: false, opened: new Promise<void>(() => {}), check: () => {} };
  const refused = { check: () => {}, lineage: "", refusal: "old", refused: AbortSignal.abort() };
  const cases = {
    "with assignments": options,
    "before decisions": { ...options, gate: gate as unknown as typeof options.gate },
    "with an outdated store": { ...options, history: refused as unknown as typeof history },
  };
  for (const [title, given] of Object.entries(cases)) {
    const over = new AbortController();
    const caller = { type: "node", nodeId: nodeId(node.name) } as const;
    const context = { method: "", caller, peer: "n:1", signal: over.signal };
    const kinds: string[] = [];
    const reading = (async () => {
      for await (const response of connect(hello(over.signal, heartbeats(time)), context, given)) {
        if (!Buffer.isBuffer(response)) kinds.push(response.message?.$case ?? "");
      }
    })();
    await time.run(500);
    assert.equal(kinds.filter((kind) => kind === "heartbeatAnswer").length, 0, title);
    assert.equal(kinds[0], "welcome");
    await time.run(3_000);
    assert.equal(kinds.filter((kind) => kind === "heartbeatAnswer").length, 1, title);
    over.abort();
    await time.run(500);
    await reading.catch(() => undefined);
  }
});

test("an answer to a heartbeat is sent at once, or by the loop if the transport refuses it", async (t) => {
  const { world, node } = await start(t);
  const { time } = world;
  node.crash();
  for (const accepts of [true, false]) {
    const over = new AbortController();
    const caller = { type: "node", nodeId: nodeId(node.name) } as const;
    const kinds: string[] = [];
    const sendNow = (message: unknown): boolean => {
      kinds.push(`${(message as ConnectResponse).message?.$case} at once`);
      return accepts;
    };
    const context = { method: "", caller, peer: "n:1", signal: over.signal, sendNow };
    const { connect: options } = world.coordinator.core.services;
    const reading = (async () => {
      for await (const response of connect(hello(over.signal, heartbeats(time)), context, options)) {
        if (!Buffer.isBuffer(response)) kinds.push(response.message?.$case ?? "");
      }
    })();
    await time.run(3_500);
    const answers = kinds.filter((kind) => kind.startsWith("heartbeatAnswer"));
    assert.deepEqual(
      answers,
      accepts ? ["heartbeatAnswer at once"] : ["heartbeatAnswer at once", "heartbeatAnswer"],
    );
    over.abort();
    await time.run(500);
    await reading.catch(() => undefined);
  }
});

test("no controller writes after the store has refused a write", async (t) => {
  const lines: string[] = [];
  const { world, node } = await start(t, (line) => void lines.push(line));
  const { history, epoch } = world.coordinator.core.services.connect;
  const revision = assignmentRevision(epoch, 1_000_000);
  history.check(node.name, { lineage: history.markFor(node.name, revision), revision });
  assert.match(world.coordinator.core.refusal() ?? "", /old copy of the data directory/);
  // Otherwise the node's pods would be evicted.
  node.crash();
  await world.time.runUntil(world.time.nowMs() + 10 * 60_000);
  assert.ok(lines.some((line) => line.includes("node-unreachable")));
  assert.deepEqual(
    lines.filter((line) => line.includes("step-failed")),
    [],
  );
});

async function start(t: TestContext, echo: (line: string) => void = () => {}) {
  const time = simTime();
  const trace = new Trace({ nowMs: time.nowMs, keep: 1, echo });
  const secrets = await makeSecrets();
  const makeNode = (options: NodeOptions) => new RealNode(options);
  const world = new World({ time, random: randomOf(1), trace, secrets, makeNode });
  t.after(() => world.end());
  await time.runUntil(time.nowMs() + 60_000);
  const [node] = world.nodes;
  assert.ok(node);
  return { world, node };
}

async function* hello(
  signal: AbortSignal,
  later: AsyncIterable<ConnectRequest> = none(),
): AsyncGenerator<ConnectRequest> {
  yield { message: { $case: "hello", value: Hello.fromPartial({ node: {} }) } };
  yield* later;
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

async function* none(): AsyncGenerator<ConnectRequest> {}

/** Yields two heartbeats after a second each, of which the second one requests an answer. */
async function* heartbeats(time: World["time"]): AsyncGenerator<ConnectRequest> {
  for (const answerRequested of [false, true]) {
    await new Promise<void>((resolve) => time.schedule(1_000, resolve));
    const value = { assignmentRevision: 0n, usage: undefined, answerRequested };
    yield { message: { $case: "heartbeat", value } };
  }
}
