import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { Connection, CoordinatorMessage } from "./connection.ts";
import { type StreamOptions, serveStream } from "./serve-stream.ts";
import { StatusOutbox } from "./status-outbox.ts";

test("ends when the protocol is violated, even if its messages find no room", async () => {
  let closed = (): void => {};
  const isClosed = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const connection = {
    heartbeatIntervalMs: 1_000,
    welcome: {},
    async *messages(): AsyncGenerator<CoordinatorMessage> {
      yield { $case: "welcome", value: {} } as CoordinatorMessage;
    },
    requestsAnswer: () => false,
    send: () => isClosed,
    close: () => closed(),
  } as unknown as Connection;
  const ended: string[] = [];
  const options = streamOptions(new VirtualClock(), ended);
  await assert.rejects(serveStream(connection, options), { code: "PROTOCOL" });
  assert.deepEqual(ended, ["services", "gateway", "meter", "prefetcher"]);
});

test("sends the next heartbeat when the coordinator's answer requests it, but not before the interval has passed", async () => {
  const clock = new VirtualClock();
  const startMs = clock.monotonicMs();
  const sentMs: number[] = [];
  const answersMs = [1_400, 700, 60_000];
  let answer: (message: CoordinatorMessage) => void = () => {};
  const over = new AbortController();
  const connection = {
    heartbeatIntervalMs: 1_000,
    heartbeatAtMs: 0,
    welcome: {},
    async *messages(): AsyncGenerator<CoordinatorMessage> {
      while (!over.signal.aborted)
        yield await new Promise<CoordinatorMessage>((resolve) => {
          answer = resolve;
        });
    },
    requestsAnswer: () => true,
    send: async ({ $case }: { $case: string }) => {
      if ($case !== "heartbeat") return;
      sentMs.push(clock.monotonicMs() - startMs);
      const nextMs = answersMs.shift() ?? 0;
      clock.schedule(10, () => answer({ $case: "heartbeatAnswer", value: { nextMs } }));
    },
    close: () => {},
  };
  const serving = serveStream(connection as unknown as Connection, streamOptions(clock, []));
  await clock.run(6_500);
  assert.deepEqual(sentMs.slice(0, 5), [0, 1_410, 2_410, 4_410, 5_410]);
  const ended = assert.rejects(serving, { code: "PROTOCOL" });
  over.abort();
  answer({ $case: "welcome", value: {} } as CoordinatorMessage);
  await clock.run(3_000);
  await ended;
});

function streamOptions(clock: VirtualClock, ended: string[]): StreamOptions {
  return {
    clock,
    journal: { revision: 0n },
    outbox: new StatusOutbox(),
    node: { report: () => undefined, usage: async () => undefined },
    services: { restart: () => () => void ended.push("services") },
    gateway: {
      restart: () => {},
      status: () => undefined,
      traffic: async () => undefined,
      subscribe: () => () => void ended.push("gateway"),
    },
    meter: { ended: () => void ended.push("meter") },
    prefetcher: { ended: () => void ended.push("prefetcher") },
  } as unknown as StreamOptions;
}
