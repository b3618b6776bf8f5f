import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { createMemoryStore } from "../store/index.ts";
import { ClusterView } from "./cluster-view.ts";
import { openView } from "./open-view.ts";

test("resolves with a given view once it contains everything in the store", async () => {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const op = { type: "put", key: "other/a", value: Buffer.from("1") } as const;
  const { revision } = await store.txn([], [op]);
  const state = new ClusterView();
  let opened = false;
  const onFatal = (error: unknown): void => assert.fail(String(error));
  const log = pino({ level: "silent" });
  const opening = openView(
    { store, log, onFatal, view: { state } },
    { record: () => {} },
    new AbortController().signal,
  ).then(() => {
    opened = true;
  });
  await clock.run(1_000);
  assert.equal(opened, false);
  state.apply([], revision);
  await opening;
});
