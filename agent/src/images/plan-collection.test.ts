import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { planCollection, SPARE_AGE_LEAST_MS, type StoredImage } from "./plan-collection.ts";

const DAY_MS = 86_400_000;
const NOW_MS = 100 * DAY_MS;
const LIMITS = { unusedMs: 7 * DAY_MS };

const anImage = (reference: string, ageMs: number, inUse = false): StoredImage => ({
  reference,
  lastUsedMs: NOW_MS - ageMs,
  inUse,
});

test("removes images unused for a week, and lists others by age for when space is needed", () => {
  const images = [
    anImage("b", 2 * DAY_MS),
    anImage("old", 8 * DAY_MS),
    anImage("a", 3 * DAY_MS),
    anImage("oldest", 9 * DAY_MS),
  ];
  assert.deepEqual(planCollection(images, LIMITS, NOW_MS), { expired: ["oldest", "old"], spare: ["a", "b"] });
});

test("keeps images that are in use or were used just now", () => {
  const images = [
    anImage("used", 50 * DAY_MS, true),
    anImage("just", SPARE_AGE_LEAST_MS - 1),
    anImage("future", -DAY_MS),
  ];
  assert.deepEqual(planCollection(images, LIMITS, NOW_MS), { expired: [], spare: [] });
});

test("removal by age can be disabled", () => {
  const plan = planCollection([anImage("a", 50 * DAY_MS)], { unusedMs: 0 }, NOW_MS);
  assert.deepEqual(plan, { expired: [], spare: ["a"] });
});

test("for any images: lists none in use and none twice, in the order of age", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = randomOf(seed).next;
    const images = Array.from({ length: Math.floor(random() * 20) }, (_, i) =>
      anImage(`i${i}`, (random() - 0.1) * 20 * DAY_MS, random() < 0.4),
    );
    const { expired, spare } = planCollection(images, LIMITS, NOW_MS);
    const named = [...expired, ...spare];
    assert.equal(new Set(named).size, named.length, `seed ${seed}`);
    const ages = named.map((name) => images.find((it) => it.reference === name));
    assert.ok(
      ages.every((it) => it?.inUse === false),
      `seed ${seed}`,
    );
    const times = ages.map((it) => it?.lastUsedMs ?? 0);
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
      `seed ${seed}`,
    );
  }
});
