import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { createMemoryStore, type StoreHealth } from "../store/index.ts";
import { watchStore } from "./store-watchdog.ts";

test("reports a failed store within a second, and ignores a full disk", () => {
  const clock = new VirtualClock();
  let health: StoreHealth = { status: "read-only", reason: "no-space", message: "full" };
  const store = Object.assign(createMemoryStore({ clock }), { health: () => health });
  const broken: string[] = [];
  watchStore({ store, clock, onBroken: ({ message }) => broken.push(message) });
  clock.advance(60_000);
  assert.deepEqual(broken, []);
  health = { status: "read-only", reason: "io-error", message: "another coordinator leads" };
  clock.advance(1_000);
  assert.deepEqual(broken, ["the store must be opened again: another coordinator leads"]);
  clock.advance(60_000);
  assert.equal(broken.length, 1);
});
