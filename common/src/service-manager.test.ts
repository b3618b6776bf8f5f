import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceManager } from "./service-manager.ts";
import { VirtualClock } from "./virtual-clock.ts";

const NOTIFIED = { NOTIFY_SOCKET: "/run/systemd/notify" };
const WATCHED = { ...NOTIFIED, WATCHDOG_USEC: "30000000", WATCHDOG_PID: "7" };

test("reports readiness with the status, then feeds the watchdog at half of its limit", async () => {
  const { manager, clock, sent } = aManager(WATCHED);
  manager.ready();
  await clock.advance(30_000);
  assert.deepEqual(sent, [["READY=1", "STATUS=0 nodes"], ["WATCHDOG=1"], ["WATCHDOG=1"]]);
});

test("sends a status only when it has changed, in one line", async () => {
  const { manager, clock, sent, become } = aManager(WATCHED);
  manager.ready();
  become("1 node\nSTATUS=other");
  await clock.advance(30_000);
  assert.deepEqual(sent.slice(1), [["WATCHDOG=1", "STATUS=1 node STATUS=other"], ["WATCHDOG=1"]]);
});

test("does not start a report while one is in progress", async () => {
  const { manager, clock, sent, hang, release } = aManager(WATCHED);
  manager.ready();
  hang();
  await clock.advance(60_000);
  assert.equal(sent.length, 2);
  release();
  await clock.advance(15_000);
  assert.equal(sent.length, 3);
});

test("sends nothing without systemd, and feeds no watchdog of another process", async () => {
  const without = aManager({});
  without.manager.ready();
  without.manager.stopping();
  await without.clock.advance(60_000);
  assert.deepEqual(without.sent, []);

  const other = aManager({ ...WATCHED, WATCHDOG_PID: "8" });
  other.manager.ready();
  await other.clock.advance(120_000);
  assert.deepEqual(other.sent, [["READY=1", "STATUS=0 nodes"]]);
});

test("reports the stop, and sends nothing afterwards", async () => {
  const { manager, clock, sent } = aManager(WATCHED);
  manager.ready();
  manager.stopping();
  await clock.advance(60_000);
  assert.deepEqual(sent.slice(1), [["STOPPING=1", "STATUS=stopping"]]);
});

function aManager(environment: Readonly<Record<string, string>>) {
  const clock = new VirtualClock();
  const sent: (readonly string[])[] = [];
  let status = "0 nodes";
  let isHanging = false;
  let waiting: (() => void)[] = [];
  const manager = new ServiceManager({
    ...{ environment, pid: 7, clock, status: () => status },
    send: (assignments, done) => {
      sent.push(assignments);
      if (isHanging) waiting.push(done);
      else done();
    },
  });
  return {
    ...{ manager, clock, sent },
    become: (text: string) => {
      status = text;
    },
    hang: () => {
      isHanging = true;
    },
    release: () => {
      isHanging = false;
      for (const done of waiting) done();
      waiting = [];
    },
  };
}
