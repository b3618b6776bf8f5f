import assert from "node:assert/strict";
import { Socket } from "node:net";
import { describe, it } from "node:test";
import { Offenders } from "./offenders.ts";
import { PacedStarts } from "./paced-starts.ts";

describe("PacedStarts", () => {
  it("starts connections at once until their address offends, and after that one by one", () => {
    const { starts, started, offenders, advance } = paced();
    for (let i = 0; i < 3; i++) starts.add(new Socket());
    assert.equal(started.length, 3);
    offenders.offend("", 0);
    const waiting = Array.from({ length: 3 }, () => new Socket());
    for (const socket of waiting) starts.add(socket);
    assert.equal(started.length, 3);
    for (let count = 1; count <= 3; count++) {
      advance();
      assert.deepEqual(started.slice(3), waiting.slice(0, count));
    }
    assert.equal(starts.waiting, 0);
  });

  it("forgets a connection that closes while it waits", async () => {
    const { starts, started, offenders, advance } = paced();
    offenders.offend("", 0);
    const socket = new Socket();
    starts.add(socket);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.destroy();
    await closed;
    advance();
    assert.equal(starts.waiting, 0);
    assert.equal(started.length, 0);
  });

  it("closes waiting connections and stops its timer", () => {
    const { starts, offenders, timers } = paced();
    offenders.offend("", 0);
    const socket = new Socket();
    starts.add(socket);
    starts.close();
    assert.equal(socket.destroyed, true);
    assert.equal(timers.size, 0);
  });
});

function paced() {
  let nowMs = 0;
  const offenders = new Offenders();
  const started: Socket[] = [];
  const timers = new Set<() => void>();
  const starts = new PacedStarts({
    offenders,
    monotonicMs: () => nowMs,
    schedule: (_delayMs, run) => {
      timers.add(run);
      return () => void timers.delete(run);
    },
    start: (socket) => started.push(socket),
  });
  const advance = (): void => {
    nowMs += 125;
    for (const run of [...timers]) {
      timers.delete(run);
      run();
    }
  };
  return { starts, started, offenders, timers, advance };
}
