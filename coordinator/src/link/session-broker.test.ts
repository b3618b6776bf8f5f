import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { nodeId } from "@forage/identity";
import {
  LogOptions,
  type ServeRequest,
  type ServeResponse,
  type SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import { collected, settled } from "../../test/support/until.ts";
import { CoordinatorError } from "../errors.ts";
import type { CallContext } from "../rpc/caller.ts";
import { Channel } from "./channel.ts";
import { SessionBroker } from "./session-broker.ts";

const logs = { $case: "logs", value: LogOptions.fromPartial({ follow: true }) } as const;
const request = { podUid: "p1", container: "", kind: logs };

test("transfers bytes between agent and client in both directions", async () => {
  const { broker, requested, open } = setUp();
  const tunnel = open("n1");
  const [session] = requested;
  assert.deepEqual(session, { node: "n1", request: { ...request, sessionId: "s0" } });
  const agent = serveAs(broker, "n1", "s0");
  await agent.say({ $case: "stdout", value: Buffer.from("hello") });
  await tunnel.toAgent.push({ frame: { $case: "stdin", value: Buffer.from("y") } });
  await agent.say({ $case: "end", value: { exitCode: 3, error: "" } });
  const frames = (await collected(tunnel.fromAgent)).map(({ frame }) => frame?.$case);
  assert.deepEqual(frames, ["stdout", "end"]);
  tunnel.toAgent.close();
  assert.deepEqual(
    (await agent.received).map(({ frame }) => frame?.$case),
    ["stdin"],
  );
});

test("fails if the agent doesn't open its stream in time", async () => {
  const { clock, open } = setUp();
  const tunnel = open("n1");
  clock.advance(10_000);
  await assert.rejects(collected(tunnel.fromAgent), {
    code: "UNAVAILABLE",
    message: /n1 did not open/,
  });
});

test("fails if the agent's stream breaks before its end", async () => {
  const { broker, open } = setUp();
  const tunnel = open("n1");
  const agent = serveAs(broker, "n1", "s0");
  await agent.say({ $case: "stdout", value: Buffer.from("half") });
  agent.hangUp();
  await assert.rejects(collected(tunnel.fromAgent), { code: "UNAVAILABLE" });
});

test("ends the agent's stream when the client leaves, even while it is blocked", async () => {
  const { broker, open } = setUp();
  const tunnel = open("n1");
  const agent = serveAs(broker, "n1", "s0");
  for (let count = 0; count < 40; count++) void agent.say({ $case: "stdout", value: Buffer.from("x") });
  for await (const _ of tunnel.fromAgent) break;
  tunnel.toAgent.close();
  assert.deepEqual(await agent.received, []);
});

test("a slow client slows down the agent", async () => {
  const { broker, open } = setUp();
  const tunnel = open("n1");
  const agent = serveAs(broker, "n1", "s0");
  for (let count = 0; count < 100; count++) void agent.say({ $case: "stdout", value: Buffer.from("x") });
  await settled();
  assert.ok(agent.read() < 30, `${agent.read()} frames were read without a consumer`);
  tunnel.toAgent.close();
  tunnel.fromAgent.close();
});

test("leaves nothing behind if the client leaves before the agent opens its stream", async () => {
  const { clock, broker, open } = setUp();
  const gone = new AbortController();
  const tunnel = open("n1", gone.signal);
  gone.abort();
  assert.deepEqual(await collected(tunnel.fromAgent), []);
  assert.equal(clock.pending, 0);
  await assert.rejects(serveAs(broker, "n1", "s0").received, { code: "NOT_FOUND" });
  const early = open("n1", AbortSignal.abort());
  assert.deepEqual(await collected(early.fromAgent), []);
  assert.equal(clock.pending, 0);
});

test("fails at once for a node that isn't connected", () => {
  const { clock, broker } = setUp(() => {
    throw new CoordinatorError("UNAVAILABLE", "node n1 is not connected");
  });
  assert.throws(() => broker.open("n1", request, new AbortController().signal, "a"), { code: "UNAVAILABLE" });
  assert.equal(clock.pending, 0);
});

test("lets only the requested node serve a session, and only once", async () => {
  const { clock, broker, open } = setUp();
  open("n1");
  await assert.rejects(serveAs(broker, "n2", "s0").received, { code: "NOT_FOUND" });
  await assert.rejects(serveAs(broker, "n1", "s9").received, { code: "NOT_FOUND" });
  const first = serveAs(broker, "n1", "s0");
  await settled();
  assert.equal(clock.pending, 0, "its time-out is cancelled");
  await assert.rejects(serveAs(broker, "n1", "s0").received, { code: "NOT_FOUND" });
  first.hangUp();
  await first.received;
});

test("requires the session's id in the first frame", async () => {
  const { broker } = setUp();
  const requests = new Channel<ServeRequest>(1);
  await requests.push({ frame: { $case: "stdout", value: Buffer.from("x") } });
  await assert.rejects(collected(broker.serve(requests, contextOf("n1"))), { code: "INVALID" });
});

test("limits sessions to 1,000, and accepts another when one ends", async () => {
  const { broker, open } = setUp();
  const gone = new AbortController();
  open("n1", gone.signal);
  for (let count = 1; count < 1_000; count++) open("n1");
  assert.throws(() => open("n1"), { code: "RESOURCE_EXHAUSTED" });
  gone.abort();
  const tunnel = open("n1");
  const agent = serveAs(broker, "n1", "s1000");
  await settled();
  assert.throws(() => open("n1"), { code: "RESOURCE_EXHAUSTED" });
  tunnel.toAgent.close();
  await agent.received;
  open("n1");
});

function setUp(ask: (node: string) => void = () => {}) {
  const clock = new VirtualClock();
  const requested: { readonly node: string; readonly request: SessionRequest }[] = [];
  let names = 0;
  let callers = 0;
  const broker = new SessionBroker({
    clock,
    randomName: () => `s${names++}`,
    sessions: {
      request: (node, session) => {
        ask(node);
        requested.push({ node, request: session });
      },
    },
  });
  const open = (node: string, signal = new AbortController().signal) =>
    broker.open(node, request, signal, `caller ${callers++}`);
  return { clock, broker, requested, open };
}

/** An agent's side of one session. */
function serveAs(broker: SessionBroker, node: string, sessionId: string) {
  const frames = new Channel<ServeRequest>(1_000);
  let read = 0;
  async function* requests(): AsyncGenerator<ServeRequest> {
    for await (const frame of frames) {
      read++;
      yield frame;
    }
  }
  void frames.push({ frame: { $case: "sessionId", value: sessionId } });
  const received: Promise<ServeResponse[]> = collected(broker.serve(requests(), contextOf(node)));
  // Tests that don't await the promise must not fail because of it.
  received.catch(() => {});
  return {
    received,
    read: () => read,
    say: (frame: NonNullable<ServeRequest["frame"]>) => frames.push({ frame }),
    hangUp: () => frames.close(),
  };
}

function contextOf(node: string): CallContext {
  return {
    method: "/forage.agent.v1.AgentService/Serve",
    caller: { type: "node", nodeId: nodeId(node) },
    peer: "192.0.2.1:1",
    signal: new AbortController().signal,
  };
}
