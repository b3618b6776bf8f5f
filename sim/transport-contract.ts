import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Clock } from "@forage/common/clock";
import {
  AssignmentDelta,
  type ConnectRequest,
  type ConnectResponse,
  Heartbeat,
  Hello,
  Welcome,
} from "@forage/proto/forage/agent/v1/agent";
import { Connection, type CoordinatorMessage } from "../agent/src/link/connection.ts";
import { LinkError } from "../agent/src/link/link-error.ts";
import type { Handler } from "./fleet/stream.ts";

export interface TransportUnderTest {
  /** The agent's clock, whose time advances by itself. */
  readonly clock: Clock;
  /** Opens a client as each attempt of the link does. */
  readonly openClient: () => Connection["client"];
  /** Starts a coordinator that accepts calls and answers each stream with the handler. */
  readonly serve: (handler: Handler) => Promise<void>;
  /** Kills the coordinator's process without closing its connections. */
  readonly die: () => void;
}

const COUNT = 40;

type Check = (
  what: string,
  run: (transport: TransportUnderTest, open: () => Promise<Connection>) => Promise<void>,
) => void;

/** Tests the transport of the stream between the agent's connection and the coordinator's handler. */
export function testAgentTransport(
  name: string,
  make: (t: TestContext) => Promise<TransportUnderTest>,
): void {
  const check: Check = (what, run) =>
    test(`${name}: ${what}`, { timeout: 60_000 }, async (t) => {
      const transport = await make(t);
      const { clock, openClient } = transport;
      const { signal } = new AbortController();
      await run(transport, async () => {
        const connection = await Connection.open(openClient(), Hello.fromPartial({}), { clock, signal });
        t.after(() => connection.close());
        return connection;
      });
    });

  check("messages of both directions arrive whole and in order", async ({ serve }, open) => {
    await serve(echo);
    const connection = await open();
    const sent = Array.from({ length: COUNT }, (_, at) => BigInt(at));
    for (const revision of sent)
      await connection.send({
        $case: "heartbeat",
        value: Heartbeat.fromPartial({ assignmentRevision: revision }),
      });
    assert.deepEqual(await revisionsOf(connection.messages(), COUNT), sent);
  });

  check("a stream that the coordinator ends has delivered all messages before", async ({ serve }, open) => {
    await serve(async function* (requests) {
      yield* welcome(requests);
      for (let at = 0; at < COUNT; at++) yield delta(BigInt(at));
    });
    const messages = (await open()).messages();
    assert.equal((await revisionsOf(messages, COUNT)).length, COUNT);
    await assert.rejects(messages.next(), isUnavailable);
  });

  checkSendingAtOnce(check);

  check("an error of the coordinator's handler ends the stream", async ({ serve }, open) => {
    await serve(async function* (requests) {
      yield* welcome(requests);
      throw new Error("a defect");
    });
    const messages = (await open()).messages();
    await assert.rejects(messages.next(), isUnavailable);
  });

  check("a handler learns that the agent has closed the stream", async ({ serve }, open) => {
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    await serve(async function* (requests, gone) {
      yield* welcome(requests);
      for await (const _ of requests);
      if (!gone.aborted) await once(gone, "abort");
      leave();
    });
    (await open()).close();
    await left;
  });

  check("an agent learns that the coordinator has died", async ({ serve, die }, open) => {
    await serve(echo);
    const messages = (await open()).messages();
    const next = messages.next();
    die();
    await assert.rejects(next, isUnavailable);
  });

  check(
    "a call fails while no coordinator answers, and the next coordinator takes calls",
    async (it, open) => {
      await it.serve(echo);
      await open();
      it.die();
      await assert.rejects(open(), isUnavailable);
      await it.serve(echo);
      const connection = await open();
      await connection.send({
        $case: "heartbeat",
        value: Heartbeat.fromPartial({ assignmentRevision: 7n }),
      });
      assert.deepEqual(await revisionsOf(connection.messages(), 1), [7n]);
    },
  );
}

/** Tests messages that are sent beside those that the handler yields. */
function checkSendingAtOnce(check: Check): void {
  check("a message that a handler sends at once arrives after those before it", async ({ serve }, open) => {
    await serve(async function* (requests, _gone, sendNow) {
      yield* welcome(requests);
      for await (const { message } of requests) {
        if (message?.$case !== "heartbeat") continue;
        yield delta(message.value.assignmentRevision);
        // The transport may still be busy with the message before.
        while (!sendNow(delta(message.value.assignmentRevision + 1n))) await setImmediate();
      }
    });
    const connection = await open();
    await connection.send({ $case: "heartbeat", value: Heartbeat.fromPartial({ assignmentRevision: 3n }) });
    assert.deepEqual(await revisionsOf(connection.messages(), 2), [3n, 4n]);
  });

  check("a message that a handler sends at once after the agent has left is refused", async (it, open) => {
    const { promise: refused, resolve } = Promise.withResolvers<boolean>();
    await it.serve(async function* (requests, gone, sendNow) {
      yield* welcome(requests);
      if (!gone.aborted) await once(gone, "abort");
      resolve(!sendNow(delta(1n)));
    });
    (await open()).close();
    assert.equal(await refused, true);
  });
}

/** Returns the revision of each heartbeat in a delta. */
const echo: Handler = async function* (requests) {
  for await (const request of requests) {
    if (request.message?.$case === "hello") yield welcomed();
    if (request.message?.$case === "heartbeat") yield delta(request.message.value.assignmentRevision);
  }
};

async function* welcome(requests: AsyncIterable<ConnectRequest>): AsyncGenerator<ConnectResponse> {
  const { value } = await requests[Symbol.asyncIterator]().next();
  assert.equal(value?.message?.$case, "hello");
  yield welcomed();
}

function welcomed(): ConnectResponse {
  return { message: { $case: "welcome", value: Welcome.fromPartial({}) } };
}

function delta(revision: bigint): ConnectResponse {
  return { message: { $case: "delta", value: AssignmentDelta.fromPartial({ revision }) } };
}

async function revisionsOf(messages: AsyncGenerator<CoordinatorMessage>, count: number): Promise<bigint[]> {
  const revisions: bigint[] = [];
  while (revisions.length < count) {
    const { value, done } = await messages.next();
    assert.ok(!done && value.$case === "delta");
    revisions.push(value.value.revision);
  }
  return revisions;
}

function isUnavailable(error: unknown): boolean {
  assert.ok(error instanceof LinkError, String(error));
  assert.equal(error.code, "UNAVAILABLE", error.message);
  return true;
}
