import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { aCronJobEntry } from "../../../test/support/entries.ts";
import { cronJobOf } from "../../model/cron-job.ts";
import { KnownSchedules, remembering } from "./known-schedules.ts";
import { scheduleOf } from "./schedule.ts";

const MINUTE_MS = 60_000;

for (const text of ["* * * * *", "*/7 * * * *", "30 2 * * *", "0 1,3 * * SUN", "15 0 29 2 *"])
  for (const zone of ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
    test(`remembers the due times of ${text} in ${zone} correctly, also around clock changes`, () => {
      const schedule = scheduleOf(text, zone);
      const remembered = remembering(schedule);
      const random = randomOf(text.length + zone.length);
      // Clocks change in each of these nights, in Berlin or on Lord Howe Island.
      for (const day of ["2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24"]) {
        let atMs = Date.parse(`${day}T12:00Z`);
        for (let step = 0; step < 100; step++) {
          atMs += random.below(40 * MINUTE_MS) - (random.chance(0.1) ? 60 * MINUTE_MS : 0);
          const at = new Date(atMs).toISOString();
          assert.equal(remembered.last(atMs), schedule.last(atMs), `last until ${at}`);
          assert.equal(remembered.next(atMs), schedule.next(atMs), `next after ${at}`);
        }
      }
    });

test("asks a schedule only once for the times between two due times", () => {
  const asked: string[] = [];
  const remembered = remembering({
    next: (afterMs) => {
      asked.push(`next ${afterMs}`);
      return 200;
    },
    last: (untilMs) => {
      asked.push(`last ${untilMs}`);
      return 100;
    },
  });
  for (const atMs of [150, 199, 100]) assert.equal(remembered.last(atMs), 100);
  for (const atMs of [100, 199]) assert.equal(remembered.next(atMs), 200);
  assert.deepEqual(asked, ["last 150", "next 150"]);
  remembered.last(200);
  assert.deepEqual(asked.slice(2), ["last 200", "next 200"]);
});

test("parses the schedule of a record once, and that of a changed record again", () => {
  const schedules = new KnownSchedules();
  const { record } = aCronJobEntry();
  const cron = cronJobOf(record);
  assert.ok(cron !== undefined);
  assert.equal(schedules.of(record, cron), schedules.of(record, cron));
  assert.notEqual(schedules.of(record, cron), schedules.of({ ...record }, cron));
});
