import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { settled } from "../../test/support/until.ts";
import { PendingChallenges } from "./pending-challenges.ts";

const CHALLENGE = { hostname: "a.test", token: "t1", keyAuthorization: "t1.print" };

function start() {
  const clock = new VirtualClock();
  const changes: number[] = [];
  const board = new PendingChallenges(clock, () => changes.push(board.list().length));
  return { clock, changes, board, abort: new AbortController() };
}

test("a challenge is posted at once, and it is over when the gateways answer it", async () => {
  const { board, changes, abort, clock } = start();
  let answered = false;
  const posted = board.post(CHALLENGE, abort.signal).then(() => {
    answered = true;
  });
  assert.deepEqual(board.list(), [CHALLENGE]);
  board.served(new Set(["other"]));
  await settled();
  assert.equal(answered, false, "another one is answered");
  board.served(new Set(["t1"]));
  await posted;
  assert.deepEqual(board.list(), [CHALLENGE], "the authority has yet to look");
  board.takeDown("t1");
  assert.deepEqual([board.list(), changes], [[], [1, 0]]);
  assert.equal(clock.pending, 0);
});

test("says what to do when no gateway answers the challenge", async () => {
  const { board, clock, abort } = start();
  const posted = board.post(CHALLENGE, abort.signal);
  clock.advance(90_000);
  await assert.rejects(posted, {
    name: "IssueError",
    blame: "hostname",
    message: /no gateway answers http:\/\/a\.test\/\.well-known\/acme-challenge\/t1 .* forage\.dev\/gateway/,
  });
});

test("the signal ends the wait, also one that was given before", async () => {
  for (const before of [true, false]) {
    const { board, clock, abort } = start();
    if (before) abort.abort(new Error("stopping"));
    const posted = board.post(CHALLENGE, abort.signal);
    abort.abort(new Error("stopping"));
    await assert.rejects(posted, /stopping/);
    assert.equal(clock.pending, 0);
  }
});
