import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { until } from "../../test/support/until.ts";
import { encodeJsonRecord } from "../model/codec.ts";
import { createMemoryStore } from "../store/index.ts";
import { sweepExpiredTokens } from "./expired-tokens.ts";

const DAY_MS = 24 * 3_600_000;
const SWEPT_AFTER_MS = 8 * DAY_MS;

test("a token that can't be read is reported once, and the other expired tokens are removed", {
  timeout: 20_000,
}, async (t) => {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const put = (key: string, value: Uint8Array) => store.txn([], [{ type: "put", key, value }]);
  const expired = encodeJsonRecord({ expiresAtMs: 1 });
  for (const prefix of ["join-tokens/", "coordinator-tokens/", "api-tokens/"]) {
    await put(`${prefix}a`, expired);
    await put(`${prefix}garbage`, Uint8Array.of(1, 0x7b));
    await put(`${prefix}null`, encodeJsonRecord(null));
    await put(`${prefix}newer`, Uint8Array.of(2));
    await put(`${prefix}z`, expired);
  }
  await put("api-tokens/endless", encodeJsonRecord({}));
  // An expired token stays for a while, so that its users learn that it has expired.
  const sweptMs = clock.nowMs() + SWEPT_AFTER_MS;
  const late = encodeJsonRecord({ expiresAtMs: sweptMs - 30 * 60_000 });
  for (const prefix of ["join-tokens", "coordinator-tokens"]) await put(`${prefix}/late`, late);
  await put("api-tokens/late", encodeJsonRecord({ expiresAtMs: sweptMs - 6 * DAY_MS }));
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const stop = sweepExpiredTokens({ store, clock, log });
  t.after(async () => {
    stop();
    await store.close();
  });
  clock.advance(SWEPT_AFTER_MS);
  const keys = async () =>
    (await store.range("")).records.map(({ key }) => key).filter((key) => !key.startsWith("api-token-uses/"));
  const unread = ["garbage", "newer", "null"];
  const left = ["endless", "late", ...unread].map((name) => `api-tokens/${name}`);
  for (const prefix of ["join-tokens", "coordinator-tokens"])
    left.push(...["late", ...unread].map((name) => `${prefix}/${name}`));
  await until("the expired ones are removed", async () => (await keys()).length === left.length);
  assert.deepEqual(await keys(), left.sort());
  assert.equal(lines.filter((line) => line.includes("object-failed")).length, 9, "once for each");
});
