import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { watchNetworks } from "./service-network.ts";

const INTERVAL_MS = 30_000;

test("calls the function once for each change of the host's subnets, until it is stopped", async (t) => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  let networks = ["192.0.2.0/24"];
  let changes = 0;
  const watched = watchNetworks({ networks: () => networks }, clock, () => void changes++, stop.signal);
  t.after(() => stop.abort());
  const afterInterval = async (): Promise<number> => {
    clock.advance(INTERVAL_MS);
    await new Promise((resolve) => setImmediate(resolve));
    return changes;
  };
  assert.equal(await afterInterval(), 0);
  networks = ["192.0.2.0/24", "2001:db8::/64"];
  assert.equal(changes, 0);
  assert.equal(await afterInterval(), 1);
  assert.equal(await afterInterval(), 1);
  networks = ["192.0.2.0/24"];
  assert.equal(await afterInterval(), 2);
  stop.abort();
  await watched;
});
