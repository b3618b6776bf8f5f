import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { apiTokenKey } from "../model/keys.ts";
import { createMemoryStore } from "../store/index.ts";
import { TokenUses } from "./token-uses.ts";

test("returns a use immediately from memory, and from the store after it was written", async () => {
  const { clock, uses } = await start("a");
  assert.equal(await uses.lastUsedMs("a"), undefined);
  uses.used("a");
  const usedMs = clock.nowMs();
  assert.equal(await uses.lastUsedMs("a"), usedMs);
  await uses.flush();
  assert.equal(uses.size, 0, "memory holds nothing of tokens that are not used any more");
  assert.equal(await uses.lastUsedMs("a"), usedMs);
  await uses.close();
});

test("writes the uses of the last minute when it closes", async () => {
  const { clock, uses } = await start("a");
  uses.used("a");
  await uses.close();
  assert.deepEqual([uses.size, clock.pending], [0, 0]);
  assert.equal(await uses.lastUsedMs("a"), clock.nowMs());
});

test("leaves no record of a use of a revoked token", async () => {
  const { uses } = await start();
  uses.used("gone");
  await uses.flush();
  assert.equal(uses.size, 0);
  assert.equal(await uses.lastUsedMs("gone"), undefined);
  await uses.close();
});

async function start(...tokens: string[]) {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const ops = tokens.map((id) => ({ type: "put", key: apiTokenKey(id), value: Uint8Array.of(1) }) as const);
  if (ops.length > 0) await store.txn([], ops);
  const { nowMs, schedule } = clock;
  const log = pino({ level: "silent" });
  return { clock, uses: new TokenUses({ store, nowMs, schedule, log }) };
}
