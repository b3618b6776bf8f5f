import assert from "node:assert/strict";
import { test } from "node:test";
import { EventRecord } from "@forage/proto/forage/store/v1/store";
import type { EventPage } from "./event-log.ts";
import type { EventQuery } from "./query.ts";
import { SharedBatches } from "./shared-batches.ts";

const QUERY: EventQuery = { namespace: "shop", kind: "", name: "", type: "", reason: "", sinceMs: undefined };

function aPage(): EventPage {
  const events = ["shop", "other"].map((namespace) => EventRecord.fromPartial({ namespace }));
  return { events, more: false, through: 2 };
}

test("shares the selection and encoding of a page among equal queries", () => {
  let encodings = 0;
  const shared = new SharedBatches(() => new Uint8Array([++encodings]));
  const page = aPage();
  const events = shared.select(QUERY, page);
  assert.deepEqual(
    events.map(({ namespace }) => namespace),
    ["shop"],
  );
  assert.equal(shared.select({ ...QUERY }, page), events);
  const batch = { events, sequence: 2, gap: false };
  assert.equal(shared.encoded(batch), shared.encoded({ ...batch }));
  assert.equal(encodings, 1);
});

test("shares nothing between different queries, pages and gaps", () => {
  let encodings = 0;
  const shared = new SharedBatches(() => new Uint8Array([++encodings]));
  const page = aPage();
  const events = shared.select(QUERY, page);
  assert.equal(shared.select({ ...QUERY, namespace: "" }, page).length, 2);
  assert.notEqual(shared.select(QUERY, aPage()), events);
  for (const gap of [false, true, true]) shared.encoded({ events, sequence: 2, gap });
  assert.equal(encodings, 3);
});
