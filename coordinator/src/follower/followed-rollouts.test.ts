import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { aRollout, aWorkloadEntry } from "../../test/support/entries.ts";
import { settled, until } from "../../test/support/until.ts";
import { aView, opsOf } from "../../test/support/view.ts";
import { ActingTime } from "../acting-time/acting-time.ts";
import { FollowedRollouts } from "./followed-rollouts.ts";

const LIMIT = { timeout: 60_000 };

test("calls each watcher of a rollout until it stops watching", LIMIT, async (t) => {
  const { rollouts, change } = await start(t);
  const calls = { first: 0, second: 0 };
  const stopFirst = rollouts.watch("r-1", () => {
    calls.first += 1;
  });
  const stopSecond = rollouts.watch("r-1", () => {
    calls.second += 1;
  });
  await change();
  assert.deepEqual(calls, { first: 1, second: 1 });
  stopFirst();
  await change();
  assert.deepEqual(calls, { first: 1, second: 2 });
  stopSecond();
  await change();
  assert.deepEqual(calls, { first: 1, second: 2 });
});

test("keeps a watched rollout's progress until it changes, and no other's", LIMIT, async (t) => {
  const { rollouts, change } = await start(t);
  assert.notEqual(rollouts.progress("r-1"), rollouts.progress("r-1"));
  const stop = rollouts.watch("r-1", () => undefined);
  const before = rollouts.progress("r-1");
  assert.equal(rollouts.progress("r-1"), before);
  await change();
  assert.notEqual(rollouts.progress("r-1"), before);
  stop();
  assert.notEqual(rollouts.progress("r-1"), rollouts.progress("r-1"));
});

/** Returns the rollouts of a follower, with a function that changes the workload of rollout `r-1`. */
async function start(t: TestContext) {
  const status = RolloutStatus.IN_PROGRESS;
  const resources = [{ kind: "container_service", name: "web", specHash: "h1", status }];
  const { state, store, clock } = await aView(t, {
    resources: [aWorkloadEntry()],
    rollouts: [aRollout({ resources })],
  });
  const rollouts = new FollowedRollouts({
    ...{ state, clock, time: new ActingTime({ clock }) },
    unschedulable: { get: () => undefined },
    limits: { deadlineMs: 600_000, placementMs: 300_000, stableMs: 0 },
    readyEndpoints: () => 0,
  });
  t.after(() => rollouts.close());
  let changes = 0;
  const change = async (): Promise<void> => {
    changes += 1;
    const labels = { change: String(changes) };
    await store.txn([], opsOf({ resources: [aWorkloadEntry({ labels })] }));
    const isSeen = (): boolean =>
      state.resources("shop").some(({ record }) => record.labels.change === labels.change);
    await until("the view has the change", isSeen);
    await settled();
  };
  return { rollouts, change };
}
