import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@grpc/grpc-js";
import { type MethodOf, unary } from "./call.ts";

test("a call that begins after the interruption is cancelled at once", { timeout: 180_000 }, async () => {
  const client = {
    makeUnaryRequest: (...given: readonly unknown[]) => {
      const done = given.at(-1) as (error: Error) => void;
      return { cancel: () => setImmediate(() => done(new Error("cancelled"))) };
    },
  } as unknown as Client;
  const method = { path: "/a" } as unknown as MethodOf<unknown, unknown>;
  const limits = { signal: AbortSignal.abort(), nowMs: () => 0 };
  await assert.rejects(unary(client, method, {}, limits), /cancelled/);
});
