import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { fullStore } from "../../test/support/full-store.ts";
import { settled } from "../../test/support/until.ts";
import type { EventLog } from "../events/event-log.ts";
import { decodeJsonRecord } from "../model/codec.ts";
import { notificationKey } from "../model/keys.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import type { Cursor } from "./message.ts";
import { openNotifications } from "./open-notifications.ts";
import { NOTIFICATIONS_SCHEMA } from "./settings.ts";

const settings = NOTIFICATIONS_SCHEMA.parse([
  { name: "ops", url: "https://hooks.example/", secretFile: "/key" },
]);
const events: EventLog = {
  newest: 7,
  removedThrough: 0,
  read: async (after) => ({ events: [], more: false, through: after }),
  subscribe: () => () => {},
};

test("opens over a store that accepts no writes, and removes positions of former receivers later", async () => {
  const store = await storeWith(notificationKey("former"), "{}");
  await (await open(fullStore(store))).close();
  assert.notEqual(await store.get(notificationKey("former")), undefined);
  await (await open(store)).close();
  assert.equal(await store.get(notificationKey("former")), undefined);
});

for (const text of ["", "{", "null", "[]", '{"sequence":"x"}'])
  test(`begins with new events when the position of a receiver is ${text || "empty"}`, async () => {
    const key = notificationKey("ops");
    const store = await storeWith(key, text);
    const notifications = await open(store);
    await settled();
    const stored = await store.get(key);
    assert.ok(stored);
    assert.equal(decodeJsonRecord<Cursor>(key, stored.value).sequence, 7);
    await notifications.close();
  });

async function storeWith(key: string, text: string): Promise<Store> {
  const store = createMemoryStore({ clock: new VirtualClock() });
  await store.txn([], [{ type: "put", key, value: Buffer.from(text) }]);
  return store;
}

function open(store: Store) {
  const log = pino({ level: "silent" });
  return openNotifications({ settings, cluster: "north", store, events, clock: new VirtualClock(), log });
}
