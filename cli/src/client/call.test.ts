import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { STALE_HEADER } from "@forage/common/stale-header";
import { type Client, Metadata } from "@grpc/grpc-js";
import { type MethodOf, unary } from "./call.ts";

test("cancels a call at once if it starts after the interruption", { timeout: 180_000 }, async () => {
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

test("reports an answer from a coordinator that can't reach the leader", { timeout: 180_000 }, async () => {
  let warnings = 0;
  const ask = async (headers: Metadata): Promise<unknown> => {
    const call = Object.assign(new EventEmitter(), { cancel: () => undefined });
    const client = {
      makeUnaryRequest: (...given: readonly unknown[]) => {
        setImmediate(() => {
          call.emit("metadata", headers);
          (given.at(-1) as (error: null, response: object) => void)(null, {});
        });
        return call;
      },
    } as unknown as Client;
    const method = { path: "/a" } as unknown as MethodOf<unknown, unknown>;
    const onStale = (): void => void warnings++;
    return unary(client, method, {}, { signal: new AbortController().signal, nowMs: () => 0, onStale });
  };
  await ask(new Metadata());
  assert.equal(warnings, 0);
  const stale = new Metadata();
  stale.set(STALE_HEADER, "250");
  await ask(stale);
  assert.equal(warnings, 1);
});
