import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { RefusalLog } from "./refusal-log.ts";

function started() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const clock = new VirtualClock();
  return { refusals: new RefusalLog(log, clock), clock, lines };
}

test("logs ten thousand refused joins of one address as one line at once and one with their number", () => {
  const { refusals, clock, lines } = started();
  for (let i = 0; i < 10_000; i++) refusals.note(`192.0.2.1:${i}`, { node: "a" });
  assert.deepEqual(
    lines.map(({ event, peer }) => [event, peer]),
    [["join-refused", "192.0.2.1:0"]],
  );
  clock.advance(10_000);
  refusals.note("192.0.2.1:9", { node: "a" });
  assert.deepEqual(
    lines.slice(1).map(({ event, address, count }) => [event, address, count]),
    [["joins-refused", "192.0.2.1", 9_999]],
  );
  clock.advance(20_000);
  refusals.note("192.0.2.2:9", { node: "a" });
  assert.deepEqual(
    lines.slice(2).map(({ event, address, peer }) => [event, address ?? peer]),
    [
      ["joins-refused", "192.0.2.1"],
      ["join-refused", "192.0.2.2:9"],
    ],
  );
});

test("counts refusals of very many addresses together", () => {
  const { refusals, clock, lines } = started();
  for (let i = 0; i < 5_000; i++) refusals.note(`10.0.${i >> 8}.${i & 255}:1`, { node: "a" });
  assert.equal(lines.length, 101);
  clock.advance(10_000);
  refusals.note("192.0.2.2:9", { node: "a" });
  assert.deepEqual(
    lines.slice(101, 102).map(({ address, count }) => [address, count]),
    [["others", 4_899]],
  );
});

test("logs the first refusal of each address", () => {
  const { refusals, lines } = started();
  for (const peer of ["192.0.2.1:1", "192.0.2.2:1", "2001:db8:0:1::1:1", "2001:db8:0:2::1:1"])
    refusals.note(peer, {});
  assert.equal(lines.length, 4);
});
