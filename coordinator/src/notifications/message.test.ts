import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../model/timestamp.ts";
import { eventsToSend, messageOf, signatureOf } from "./message.ts";
import { NOTIFICATIONS_SCHEMA, type NotificationSettings } from "./settings.ts";

type Fields = Parameters<typeof EventRecord.fromPartial>[0];

const anEvent = (fields: Fields = {}) =>
  EventRecord.fromPartial({
    ...{ sequence: 7n, namespace: "shop", kind: "container_service", name: "web", type: "Warning" },
    ...{ reason: "RolledBack", message: "no beans", firstAt: toTimestamp(5_000), count: 1 },
    ...fields,
  });

function settingsOf(filter: object = {}): NotificationSettings {
  const [settings] = NOTIFICATIONS_SCHEMA.parse([
    { name: "ops", url: "https://hooks.example/x", secretFile: "/key", ...filter },
  ]);
  assert.ok(settings);
  return settings;
}

const filters: readonly (readonly [what: string, filter: object, event: Fields, sent: boolean])[] = [
  ["a warning by default", {}, {}, true],
  ["no normal event by default", {}, { type: "Normal" }, false],
  ["a normal event on request", { types: ["Normal"] }, { type: "Normal" }, true],
  ["a listed reason", { reasons: ["NodeLost", "RolledBack"] }, {}, true],
  ["no other reason", { reasons: ["NodeLost"] }, {}, false],
  ["a listed kind", { kinds: ["container_service"] }, {}, true],
  ["no other kind", { kinds: ["node"] }, {}, false],
  ["a listed namespace", { namespaces: ["shop"] }, {}, true],
  ["no event of nodes to a receiver of one namespace", { namespaces: ["shop"] }, { namespace: "" }, false],
  ["no repetition of an event that was sent", {}, { count: 2, firstAt: toTimestamp(4_000) }, false],
  ["a repetition whose first occurrence was not read", {}, { count: 2, firstAt: toTimestamp(4_001) }, true],
];

for (const [what, filter, event, sent] of filters)
  test(`sends ${what}`, () => {
    const cursor = { sequence: 1, coveredMs: 4_000 };
    assert.equal(eventsToSend([anEvent(event)], settingsOf(filter), cursor).length, sent ? 1 : 0);
  });

test("contains its events in their public form, and an id that stays the same", () => {
  const of = { events: [anEvent(), anEvent({ sequence: 9n })], cluster: "north", missed: false };
  const { id, body } = messageOf(settingsOf(), of);
  assert.equal(id, "ops-9");
  const { notification, cluster, missed, events } = JSON.parse(body);
  assert.deepEqual([notification, cluster, missed], ["ops", "north", false]);
  assert.deepEqual(events[0], {
    ...{ sequence: "7", namespace: "shop", kind: "container_service", name: "web", type: "Warning" },
    ...{ reason: "RolledBack", message: "no beans", firstAt: "1970-01-01T00:00:05.000Z", count: 1 },
  });
  assert.deepEqual(messageOf(settingsOf(), of), { id, body });
});

test("signs the time and the body", () => {
  const key = Buffer.from("0123456789abcdef");
  const mac = createHmac("sha256", key).update("1700000000.{}").digest("hex");
  assert.equal(signatureOf("{}", key, 1_700_000_000_999), `t=1700000000,v1=${mac}`);
});

const refused: readonly (readonly [what: string, entries: object[], RegExp])[] = [
  ["plain http to another host", [{ url: "http://hooks.example/" }], /must be an https URL/],
  ["a password in the URL", [{ url: "https://a:b@hooks.example/" }], /without a user/],
  ["another scheme", [{ url: "file:///etc/passwd" }], /must be an https URL/],
  ["an unknown severity", [{ types: ["Error"] }], /types/],
  ["no severity", [{ types: [] }], /types/],
  ["a name with capitals", [{ name: "Ops" }], /lowercase/],
  ["two entries with one name", [{}, {}], /one name/],
  ["an unknown field", [{ reason: "x" }], /reason/],
];

for (const [what, entries, problem] of refused)
  test(`refuses ${what}`, () => {
    const all = entries.map((entry) => ({
      name: "ops",
      url: "https://hooks.example/",
      secretFile: "/key",
      ...entry,
    }));
    const { success, error } = NOTIFICATIONS_SCHEMA.safeParse(all);
    assert.equal(success, false);
    assert.match(error?.message ?? "", problem);
  });

test("accepts plain http on loopback", () => {
  for (const host of ["localhost:9", "127.0.0.1", "[::1]:80"])
    assert.equal(settingsOf({ url: `http://${host}/hook` }).url, `http://${host}/hook`);
});
