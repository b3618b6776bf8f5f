import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "@forage/common/log";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { ApiTokenRecord } from "@forage/identity/api-token";
import { createMemoryStore } from "../store/index.ts";
import { DashboardSessions, MAX_SESSIONS, MAX_SESSIONS_OF_TOKEN, type SessionsOptions } from "./sessions.ts";
import { openStoredSessions } from "./stored-browsers.ts";

const HOUR_MS = 3_600_000;

function aWorld() {
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const tokens = new Map<string, ApiTokenRecord>();
  const addToken = (id: string, expiresAtMs?: number): void => {
    const grants = [{ role: "viewer", namespaces: "*" }] as const;
    const record = { id, description: "", secretHash: "", grants, createdAtMs: 0 };
    tokens.set(id, { ...record, ...(expiresAtMs !== undefined && { expiresAtMs }) });
  };
  let made = 0;
  const lapses = new Map<() => void, string>();
  const lapse = (token: string): void => {
    for (const [run, id] of lapses) if (id === token) run();
  };
  const options: SessionsOptions = {
    findToken: (id) => {
      const record = tokens.get(id);
      return record && { id, revision: 1, record };
    },
    clock,
    watchToken: (id, lapse) => {
      lapses.set(lapse, id);
      return () => lapses.delete(lapse);
    },
    randomBytes: (count) => Buffer.alloc(count, `${++made} `),
  };
  const sessions = new DashboardSessions(options);
  return { clock, tokens, addToken, options, sessions, lapse, watched: () => lapses.size };
}

test("ends a session with its token, without any further request", () => {
  const { sessions, addToken, lapse, watched } = aWorld();
  addToken("a");
  addToken("b");
  const [ended, other] = [sessions.find(sessions.start("a")), sessions.find(sessions.start("b"))];
  lapse("a");
  assert.equal(ended?.session.signal.aborted, true);
  assert.equal(other?.session.signal.aborted, false);
  assert.equal(watched(), 1);
  sessions.close();
  assert.equal(watched(), 0);
});

test("ends a session after 8 hours without a request, even if streams are open", () => {
  const { sessions, addToken, clock } = aWorld();
  addToken("a");
  const id = sessions.start("a");
  clock.advance(5 * HOUR_MS);
  const found = sessions.find(id);
  clock.advance(8 * HOUR_MS - 1);
  assert.equal(found?.session.signal.aborted, false);
  clock.advance(1);
  assert.equal(found?.session.signal.aborted, true);
  assert.equal(clock.pending, 0);
});

test("gives a session the permissions of its token until the token is revoked", () => {
  const { sessions, tokens, addToken } = aWorld();
  addToken("a");
  const id = sessions.start("a");
  const found = sessions.find(id);
  assert.deepEqual(found?.caller, {
    type: "user",
    name: "token:a",
    grants: [{ role: "viewer", namespaces: "*" }],
    tokenId: "a",
  });
  assert.equal(sessions.find(`${id}x`), undefined);
  tokens.delete("a");
  assert.equal(sessions.find(id), undefined);
  assert.equal(found?.session.signal.aborted, true);
  assert.equal(sessions.size, 0);
});

test("ends a session when its token expires, when it is idle, at its longest lifetime, and at a log-out", () => {
  const { sessions, clock, addToken } = aWorld();
  addToken("short", clock.nowMs() + HOUR_MS);
  addToken("long");
  const [short, unused, used, loggedOut] = ["short", "long", "long", "long"].map((id) => sessions.start(id));
  sessions.end(loggedOut ?? "");
  assert.equal(sessions.find(loggedOut ?? ""), undefined);
  clock.advance(HOUR_MS);
  assert.equal(sessions.find(short ?? ""), undefined);
  const kept = sessions.find(used ?? "")?.session;
  clock.advance(7 * HOUR_MS + 1);
  assert.equal(sessions.find(unused ?? ""), undefined);
  assert.ok(sessions.find(used ?? ""));
  clock.advance(7 * HOUR_MS);
  assert.ok(sessions.find(used ?? ""));
  assert.equal(kept?.signal.aborted, false);
  clock.advance(7 * HOUR_MS);
  assert.ok(sessions.find(used ?? ""));
  clock.advance(2 * HOUR_MS);
  assert.equal(kept?.signal.aborted, true, "a day has passed");
  assert.equal(sessions.size, 0);
});

test("restores stored sessions at the next coordinator, except ended ones", async () => {
  const log = { warn: (err: unknown) => assert.fail(`${err}`) } as unknown as Log;
  const { addToken, clock, options } = aWorld();
  const store = createMemoryStore({ clock });
  addToken("a");
  const open = async () => {
    const stored = await openStoredSessions({ store, log });
    return { stored, sessions: new DashboardSessions({ ...options, stored }) };
  };
  const first = await open();
  const [kept, loggedOut] = [first.sessions.start("a"), first.sessions.start("a")];
  const { signal } = first.sessions.find(kept)?.session ?? {};
  first.sessions.end(loggedOut);
  first.sessions.close();
  await first.stored.settled();
  assert.equal(signal?.aborted, true);
  assert.ok(
    !JSON.stringify((await store.range("")).records.map(({ key }) => key)).includes(kept),
    "no id is stored",
  );
  clock.advance(7 * HOUR_MS);
  const second = await open();
  assert.equal(second.sessions.find(loggedOut), undefined);
  assert.equal(second.sessions.find(kept)?.caller.tokenId, "a");
  clock.advance(17 * HOUR_MS);
  const third = await open();
  assert.equal(third.sessions.find(kept), undefined, "a day has passed since its start");
  await third.stored.settled();
  assert.deepEqual((await store.range("")).records, []);
});

test("ends only its own oldest session when a token logs in repeatedly", () => {
  const { sessions, addToken } = aWorld();
  addToken("mine");
  addToken("loud");
  const mine = sessions.start("mine");
  const first = sessions.start("loud");
  for (let count = 0; count < MAX_SESSIONS_OF_TOKEN; count++) sessions.start("loud");
  assert.equal(sessions.size, MAX_SESSIONS_OF_TOKEN + 1);
  assert.equal(sessions.find(first), undefined);
  assert.ok(sessions.find(mine));
});

test("refuses a log-in when sessions of other tokens use all slots", () => {
  const { sessions, addToken } = aWorld();
  for (let index = 0; index < MAX_SESSIONS; index++) {
    addToken(`t${index}`);
    sessions.start(`t${index}`);
  }
  addToken("late");
  assert.throws(() => sessions.start("late"), { code: "RESOURCE_EXHAUSTED" });
  sessions.start("t0");
  assert.equal(sessions.size, MAX_SESSIONS);
  sessions.close();
  assert.equal(sessions.size, 0);
});
