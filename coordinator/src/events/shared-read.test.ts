import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventPage } from "./event-log.ts";
import { SharedRead } from "./shared-read.ts";

const PAGE: EventPage = { events: [], through: 9, more: false };

test("reads once for equal requests", async () => {
  const { shared, reads, load } = start();
  const question = { after: 7, limit: 500, newest: 9 };
  const pages = await Promise.all([shared.read(question, load), shared.read({ ...question }, load)]);
  assert.deepEqual(pages, [PAGE, PAGE]);
  assert.equal(reads.length, 1);
});

for (const [what, other] of [
  ["another place", { after: 8, limit: 500, newest: 9 }],
  ["another limit", { after: 7, limit: 100, newest: 9 }],
  ["the same after more was written", { after: 7, limit: 500, newest: 10 }],
] as const)
  test(`reads again for ${what}`, async () => {
    const { shared, reads, load } = start();
    await shared.read({ after: 7, limit: 500, newest: 9 }, load);
    await shared.read(other, load);
    assert.equal(reads.length, 2);
  });

test("reads again after a failed read", async () => {
  const { shared, reads, load } = start();
  const question = { after: 7, limit: 500, newest: 9 };
  await assert.rejects(
    shared.read(question, () => Promise.reject(new Error("no disk"))),
    /no disk/,
  );
  assert.deepEqual(await shared.read(question, load), PAGE);
  assert.equal(reads.length, 1);
});

function start() {
  const reads: number[] = [];
  const load = async (): Promise<EventPage> => {
    reads.push(1);
    return PAGE;
  };
  return { shared: new SharedRead(), reads, load };
}
