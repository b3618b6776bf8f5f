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

async function* hello(signal: AbortSignal): AsyncGenerator<ConnectRequest> {
  yield { message: { $case: "hello", value: Hello.fromPartial({ node: {} }) } };
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
