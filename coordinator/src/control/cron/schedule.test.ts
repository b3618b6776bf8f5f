import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { cronScheduleProblem } from "../../api/validate/syntax/cron-schedule.ts";
import { scheduleOf } from "./schedule.ts";

for (const [schedule, timezone, from, times] of [
  ["@hourly", "UTC", "2026-01-01T00:00Z", ["01T01:00", "01T02:00"]],
  ["@weekly", "UTC", "2026-01-01T00:00Z", ["04T00:00", "11T00:00"]],
  ["*/15 * * * *", "UTC", "2026-01-01T00:00Z", ["01T00:15", "01T00:30"]],
  ["5/20 * * * *", "UTC", "2026-01-01T00:00Z", ["01T00:05", "01T00:25", "01T00:45", "01T01:05"]],
  ["0 9-17/4 * * mon-FRI", "UTC", "2026-01-02T10:00Z", ["02T13:00", "02T17:00", "05T09:00"]],
  ["0 0 * * 7", "UTC", "2026-01-01T00:00Z", ["04T00:00", "11T00:00"]],
  ["0 0 13 * FRI", "UTC", "2026-01-10T00:00Z", ["13T00:00", "16T00:00", "23T00:00"]],
  ["0 0 ? * 1/3", "UTC", "2026-01-01T00:00Z", ["05T00:00", "08T00:00"]],
  ["30 8 * * *", "America/New_York", "2026-01-01T00:00Z", ["01T13:30", "02T13:30"]],
] as const) {
  test(`${schedule} in ${timezone}`, () =>
    assert.deepEqual(nextOf(schedule, timezone, from, times.length), times));
}

// Clocks go forward at 01:00Z on 29 March and back at 01:00Z on 25 October.
for (const [what, schedule, from, times] of [
  [
    "a time of day that is skipped is due right after the gap",
    "30 2 * * *",
    "2026-03-28T00:00Z",
    ["28T01:30", "29T01:00", "30T00:30"],
  ],
  [
    "a skipped time of a list is due right after the gap",
    "30 2,14 * * *",
    "2026-03-28T23:00Z",
    ["29T01:00", "29T12:30"],
  ],
  [
    "a half-hourly schedule has no gap",
    "*/30 * * * *",
    "2026-03-29T00:15Z",
    ["29T00:30", "29T01:00", "29T01:30"],
  ],
  ["an hourly schedule has no gap", "30 * * * *", "2026-03-29T00:00Z", ["29T00:30", "29T01:30", "29T02:30"]],
  ["a time of day that is repeated is due once", "30 2 * * *", "2026-10-24T12:00Z", ["25T00:30", "26T01:30"]],
  [
    "a repeated time of a range is due once",
    "30 1-3 * * *",
    "2026-10-24T22:00Z",
    ["24T23:30", "25T00:30", "25T02:30", "26T00:30"],
  ],
  [
    "a half-hourly schedule is due in both of the repeated hours",
    "*/30 * * * *",
    "2026-10-25T00:15Z",
    ["25T00:30", "25T01:00", "25T01:30", "25T02:00"],
  ],
] as const) {
  test(`change of clocks: ${what}`, () => {
    const schedules = scheduleOf(schedule, "Europe/Berlin");
    assert.deepEqual(nextOf(schedule, "Europe/Berlin", from, times.length), times);
    // `last` returns the same times as `next`.
    let untilMs = Date.parse(from);
    for (let due = schedules.next(untilMs), count = 0; due !== undefined && count < times.length; count++) {
      assert.equal(schedules.last(due), due);
      assert.equal(schedules.last(due + 1), due);
      if (count > 0) assert.equal(schedules.last(due - 1), untilMs);
      untilMs = due;
      due = schedules.next(due);
    }
  });
}

test("handles a change of clocks at midnight", () => {
  // Cairo's clocks go from 00:00 to 01:00 on Friday 24 April.
  assert.deepEqual(nextOf("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00Z", 2), ["23T22:00", "24T21:00"]);
});

test("finds 29 February across years without one", () => {
  assert.deepEqual(nextOf("0 0 29 2 *", "UTC", "2026-01-01T00:00Z", 1), ["29T00:00"]);
  const next = scheduleOf("0 0 29 2 *", "UTC").next(Date.parse("2096-03-01T00:00Z"));
  assert.equal(new Date(next ?? 0).toISOString().slice(0, 10), "2104-02-29");
});

test("random valid schedules are due exactly when their fields match", () => {
  let valid = 0;
  for (let seed = 0; seed < 400; seed++) {
    const random = randomOf(seed);
    const text = randomSchedule(random);
    if (cronScheduleProblem(text) !== undefined) continue;
    valid++;
    const schedule = scheduleOf(text, "UTC");
    const isDue = fieldsOf(text);
    const startMs = Date.UTC(
      2024 + random.below(4),
      random.below(12),
      1 + random.below(28),
      random.below(24),
      random.below(60),
    );
    let expected: number | undefined;
    for (let minute = 1; minute <= 3 * 24 * 60 && expected === undefined; minute++) {
      if (isDue(startMs + minute * 60_000)) expected = startMs + minute * 60_000;
    }
    const next = schedule.next(startMs);
    const within = next !== undefined && next <= startMs + 3 * 24 * 3_600_000 ? next : undefined;
    assert.equal(within, expected, `seed ${seed}: "${text}" after ${new Date(startMs).toISOString()}`);
    assert.notEqual(next, undefined, `seed ${seed}: "${text}" is due some day`);
    assert.equal(schedule.last(next ?? 0), next, `seed ${seed}: "${text}"`);
  }
  assert.ok(valid > 100, `${valid} of them are valid`);
});

function nextOf(schedule: string, timezone: string, from: string, count: number): string[] {
  const times: string[] = [];
  for (let ms = Date.parse(from), left = count; left > 0; left--) {
    const next = scheduleOf(schedule, timezone).next(ms);
    if (next === undefined) break;
    times.push(new Date(next).toISOString().slice(8, 16));
    ms = next;
  }
  return times;
}

const LIMITS = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const;
const WORDS = [[], [], [], ["jan", "MAY", "Dec"], ["sun", "WED", "Sat"]] as const;

function randomSchedule(random: Random): string {
  return LIMITS.map(([min, max], index) => {
    const value = (): string => {
      const named = WORDS[index] ?? [];
      if (named.length > 0 && random.chance(0.3)) return random.pick(named);
      return String(min + random.below(max - min + 1));
    };
    const part = (): string => {
      const base = random.pick(["*", "?", value(), `${value()}-${value()}`]);
      return random.chance(0.3) ? `${base}/${1 + random.below(99)}` : base;
    };
    // "*" is the most likely choice, so that the schedule is due often enough for the test.
    if (random.chance(0.5)) return "*";
    return Array.from({ length: 1 + random.below(3) }, part).join(",");
  }).join(" ");
}

/** A second implementation of the rules: returns a function that reports whether the schedule is due in the minute. */
function fieldsOf(text: string): (ms: number) => boolean {
  const fields = text.split(" ").map((field, index) => matcherOf(field, index));
  const [minute, hour, day, month, weekday] = fields;
  return (ms) => {
    const date = new Date(ms);
    const inDay = day?.has(date.getUTCDate()) ?? false;
    const inWeek = weekday?.has(date.getUTCDay()) ?? false;
    const days = day?.any || weekday?.any ? inDay && inWeek : inDay || inWeek;
    return (
      days &&
      (minute?.has(date.getUTCMinutes()) ?? false) &&
      (hour?.has(date.getUTCHours()) ?? false) &&
      (month?.has(date.getUTCMonth() + 1) ?? false)
    );
  };
}

function matcherOf(field: string, index: number): { readonly any: boolean; has(value: number): boolean } {
  const [min = 0, max = 0] = LIMITS[index] ?? [];
  const names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
  const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
  const list = index === 3 ? names : index === 4 ? days : [];
  const number = (word: string): number => {
    const named = list.indexOf(word.toLowerCase());
    return named < 0 ? Number(word) : named + min;
  };
  const hits = new Set<number>();
  let any = false;
  for (const part of field.split(",")) {
    const [base = "", step = "1"] = part.split("/");
    const star = base === "*" || base === "?";
    if (star && Number(step) === 1) any = true;
    const [from = "", to = part.includes("/") ? String(index === 4 ? 6 : max) : from] = base.split("-");
    const first = star ? min : number(from);
    const last = star ? max : number(to);
    for (let value = first; value <= last; value += Number(step)) hits.add(index === 4 ? value % 7 : value);
  }
  return { any, has: (value) => any || hits.has(value) };
}
