import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Log } from "@forage/common/log";
import { VirtualClock } from "@forage/common/virtual-clock";
import { createMemoryStore } from "../../store/index.ts";
import type { DashboardSession } from "../sessions.ts";
import { openStoredBrowsers } from "../stored-browsers.ts";
import { OpenedPorts } from "./opened-ports.ts";

const PORT = { namespace: "shop", pod: "web-1", podUid: "uid-1", port: 8_080 };

test("restores a port at the next coordinator for its browser until the session ends", async () => {
  const { start, begin, prefixes, text } = aWorld();
  const first = await start();
  const session = begin("one");
  const used = first.ports.open(session, PORT);
  const secret = first.ports.exchange(used.opened.id, used.ticket);
  assert.ok(secret);
  const unused = first.ports.open(session, PORT);
  const closed = first.ports.open(session, PORT);
  assert.ok(first.ports.exchange(closed.opened.id, closed.ticket));
  first.ports.close(closed.opened.id);
  await first.end();
  assert.equal(used.opened.signal.aborted, true, "what is open on it ends with the coordinator");
  assert.ok(!(await text()).includes(secret), "no secret is stored");

  const again = begin("one");
  const second = await start();
  assert.partialDeepStrictEqual(second.ports.find(used.opened.id), { ...PORT, session: again });
  assert.equal(second.ports.isSecret(used.opened.id, secret), true);
  assert.equal(second.ports.isSecret(used.opened.id, `${secret}x`), false);
  assert.equal(second.ports.exchange(used.opened.id, used.ticket), undefined, "its ticket was used");
  for (const { opened } of [unused, closed]) assert.equal(second.ports.find(opened.id), undefined);
  await second.end();
  assert.deepEqual(await prefixes(), [`opened-ports/${used.opened.id}`]);

  const third = await start();
  assert.ok(third.ports.find(used.opened.id));
  again.end();
  assert.equal(third.ports.find(used.opened.id), undefined);
  await third.end();
  assert.deepEqual(await prefixes(), []);
});

test("does not restore a port whose session was not restored", async () => {
  const { start, begin, prefixes } = aWorld();
  const first = await start();
  const session = begin("one");
  const { opened, ticket } = first.ports.open(session, PORT);
  assert.ok(first.ports.exchange(opened.id, ticket));
  await first.end();
  session.end();
  const second = await start();
  assert.equal(second.ports.find(opened.id), undefined);
  await second.end();
  assert.deepEqual(await prefixes(), []);
});

/**
 * Returns a store with sessions, and a function that opens the ports in successive coordinators.
 */
function aWorld() {
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const store = createMemoryStore({ clock });
  const log = { warn: (err: unknown) => assert.fail(`${err}`) } as unknown as Log;
  const sessions = new Map<string, DashboardSession>();
  const begin = (key: string) => {
    const ending = new AbortController();
    const end = (): void => {
      sessions.delete(key);
      ending.abort();
    };
    const session = { tokenId: "a", key, signal: ending.signal, end };
    sessions.set(key, session);
    return session;
  };
  const start = async () => {
    const stored = (await openStoredBrowsers({ store, log })).ports;
    const ports = new OpenedPorts({ clock, randomBytes, stored, sessionOf: (key) => sessions.get(key) });
    const end = async (): Promise<void> => {
      ports.closeAll();
      await stored.settled();
    };
    return { ports, end };
  };
  const records = async () => (await store.range("")).records;
  return {
    ...{ begin, start },
    prefixes: async () => (await records()).map(({ key }) => key),
    text: async () => (await records()).map(({ value }) => Buffer.from(value).toString()).join(),
  };
}
