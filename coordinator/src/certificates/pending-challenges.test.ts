import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { settled } from "../../test/support/until.ts";
import { PendingChallenges } from "./pending-challenges.ts";

const CHALLENGE = { hostname: "a.test", token: "t1", keyAuthorization: "t1.print" };

function start() {
  const clock = new VirtualClock();
  const changes: number[] = [];
  const challenges = new PendingChallenges(clock, () => changes.push(challenges.list().length));
  return { clock, changes, challenges, abort: new AbortController() };
}

test("publishes a challenge at once, and resolves when the gateways serve it", async () => {
  const { challenges, changes, abort, clock } = start();
  let answered = false;
  const posted = challenges.post(CHALLENGE, abort.signal).then(() => {
    answered = true;
  });
  assert.deepEqual(challenges.list(), [CHALLENGE]);
  challenges.served(new Set(["other"]));
  await settled();
  assert.equal(answered, false, "another one is answered");
  challenges.served(new Set(["t1"]));
  await posted;
  assert.deepEqual(challenges.list(), [CHALLENGE], "the authority has not queried yet");
  challenges.takeDown("t1");
  assert.deepEqual([challenges.list(), changes], [[], [1, 0]]);
  assert.equal(clock.pending, 0);
});

test("explains what to do when no gateway serves the challenge", async () => {
  const { challenges, clock, abort } = start();
  const posted = challenges.post(CHALLENGE, abort.signal);
  clock.advance(90_000);
  await assert.rejects(posted, {
    name: "IssueError",
    blame: "hostname",
    message: /no gateway answers http:\/\/a\.test\/\.well-known\/acme-challenge\/t1 .* forage\.dev\/gateway/,
  });
});

test("stops waiting at the signal, even if it was aborted before", async () => {
  for (const before of [true, false]) {
    const { challenges, clock, abort } = start();
    if (before) abort.abort(new Error("stopping"));
    const posted = challenges.post(CHALLENGE, abort.signal);
    abort.abort(new Error("stopping"));
    await assert.rejects(posted, /stopping/);
    assert.equal(clock.pending, 0);
  }
});
