import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { UnusedHandshakes } from "./unused-handshakes.ts";

const SITE = "192.0.2.1";

function counted() {
  const excess: string[] = [];
  const time = { nowMs: 0 };
  const handshakes = new UnusedHandshakes({
    rate: { burst: 10, perSecond: 1 },
    monotonicMs: () => time.nowMs,
    onExcess: (address) => excess.push(address),
  });
  const play = (count: number, isOfUse: boolean, address = SITE): void => {
    for (let at = 0; at < count; at++) {
      const socket = {} as Socket;
      handshakes.start(socket, address);
      if (isOfUse) handshakes.use(socket);
      handshakes.end(socket);
      handshakes.use(socket);
    }
  };
  return { excess, time, handshakes, play };
}

test("reports handshakes without use beyond the rate, for each address separately", () => {
  const { excess, time, handshakes, play } = counted();
  play(10, false);
  play(1_000, true, "192.0.2.2");
  assert.deepEqual(excess, []);
  play(2, false);
  assert.deepEqual(excess, [SITE, SITE]);
  time.nowMs += 3_000;
  play(1, false);
  assert.deepEqual(excess, [SITE, SITE]);
  play(10, false, "192.0.2.3");
  assert.equal(excess.length, 2);
  assert.equal(handshakes.addresses, 2);
});

test("allows a site as many unused handshakes as used ones, without saving them up", () => {
  const { excess, play } = counted();
  for (let round = 0; round < 500; round++) {
    play(1, false);
    play(1, true);
  }
  assert.deepEqual(excess, []);
  play(500, true);
  play(10, false);
  assert.deepEqual(excess, []);
  play(1, false);
  assert.deepEqual(excess, [SITE]);
});
