import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import type { NodeId } from "@forage/identity";
import { Metadata } from "@grpc/grpc-js";
import { pino } from "pino";
import { SharedAgentService } from "../link/agent-service.ts";
import { handlerOf, type Method } from "./serve.ts";

/** A call whose client accepts a message only when the test says so. */
class SlowCall extends Duplex {
  readonly metadata = new Metadata();
  accept: () => void = () => {};

  constructor() {
    super({ objectMode: true });
  }

  getPeer(): string {
    return "192.0.2.1:1";
  }

  override _read(): void {}

  override _write(_message: unknown, _encoding: string, onAccepted: () => void): void {
    this.accept = onAccepted;
  }
}

test("accepts a message at once only if no earlier one waits, and the call is not over", async () => {
  const call = new SlowCall();
  const over = Promise.withResolvers<void>();
  const began = Promise.withResolvers<(message: unknown) => boolean>();
  const handler = handlerOf(
    SharedAgentService.connect as Method,
    async function* (_requests, { sendNow }) {
      assert.ok(sendNow);
      began.resolve(sendNow);
      await over.promise;
      yield* [];
    },
    {
      identify: () => ({ type: "node", nodeId: "n1" as NodeId }),
      stopping: new AbortController().signal,
      log: pino({ level: "silent" }),
      monotonicMs: () => 0,
    },
  );
  Reflect.apply(handler, undefined, [call]);
  const sendNow = await began.promise;
  assert.equal(sendNow({}), true);
  assert.equal(sendNow({}), false);
  call.accept();
  assert.equal(sendNow({}), true);
  call.accept();
  const finished = new Promise((resolve) => call.once("finish", resolve));
  over.resolve();
  await finished;
  assert.equal(sendNow({}), false);
});
