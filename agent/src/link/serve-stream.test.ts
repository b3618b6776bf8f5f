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
  const options = {
    clock: new VirtualClock(),
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
  await assert.rejects(serveStream(connection, options), { code: "PROTOCOL" });
  assert.deepEqual(ended, ["services", "gateway", "meter", "prefetcher"]);
});
