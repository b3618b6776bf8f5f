import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { aNode, aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { settled } from "../../../test/support/until.ts";
import { aView, opsOf } from "../../../test/support/view.ts";
import type { EventInput } from "../../model/event.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";
import { MOVE_DEADLINE_MS, RebalanceController, type RebalanceSchedule } from "./controller.ts";
import { isSettled, whyNotMoved } from "./movable.ts";

const LIMIT = { timeout: 180_000 };

test("cancels a move whose replacement is not ready by the deadline", LIMIT, async (t) => {
  const { state, clock } = await start(t, [moving("a", 1_000_000)]);
  for (let turns = 0; turns < 5; turns++) await settled();
  clock.advance(MOVE_DEADLINE_MS - 1);
  for (let turns = 0; turns < 5; turns++) await settled();
  assert.notEqual(state.pod("shop", "a")?.record.drainingSince, undefined, "it has time until its deadline");
  clock.advance(1);
  await soon("the move is abandoned", () => state.pod("shop", "a")?.record.drainingSince === undefined);
  assert.equal(state.pod("shop", "a")?.record.drainCause, "");
  assert.equal(state.pod("shop", "a")?.record.node, "n1");
});

test("a change of the wall clock doesn't change the deadline of a move", LIMIT, async (t) => {
  const { state, clock, store } = await start(t, [moving("a", 1_000_000)]);
  const touch = async (): Promise<void> => {
    const pod = state.pod("shop", "a");
    assert.ok(pod);
    const { drainingSince } = pod.record;
    const record = { ...pod.record, drainingSince: drainingSince && { ...drainingSince, nanos: 1_000 } };
    await store.txn([], opsOf({ pods: [{ ...pod, record }] }));
    for (let turns = 0; turns < 5; turns++) await settled();
  };
  for (let turns = 0; turns < 5; turns++) await settled();
  clock.jumpWall(3_600_000);
  await touch();
  assert.notEqual(state.pod("shop", "a")?.record.drainingSince, undefined);
  clock.jumpWall(-7_200_000);
  clock.advance(MOVE_DEADLINE_MS);
  await soon("the move is abandoned", () => state.pod("shop", "a")?.record.drainingSince === undefined);
});

test("begins no scheduled moves while others are in progress", LIMIT, async (t) => {
  const rebalance = { intervalMs: 60_000, maxMoves: 1, goal: "restore-spread" } as const;
  const { state, clock, suggestions } = await start(t, [moving("a", 1_000_000)], "", rebalance);
  for (let turns = 0; turns < 5; turns++) await settled();
  clock.advance(60_000);
  for (let turns = 0; turns < 5; turns++) await settled();
  assert.equal(suggestions.count, 0);
  clock.advance(MOVE_DEADLINE_MS - 60_000);
  await soon("the move is abandoned", () => state.pod("shop", "a")?.record.drainingSince === undefined);
  await soon("others are looked for", () => {
    clock.advance(1_000);
    return suggestions.count > 0;
  });
});

test("cancels no move of a pod that a drain has begun", LIMIT, async (t) => {
  const drained = moving("b", 1);
  const pods = [moving("a", 1), { ...drained, record: { ...drained.record, drainCause: "drain" } }];
  const { state } = await start(t, pods);
  await soon("the late move is abandoned", () => state.pod("shop", "a")?.record.drainingSince === undefined);
  assert.notEqual(state.pod("shop", "b")?.record.drainingSince, undefined);
});

test("reports a move that can't be cancelled, and cancels the others", LIMIT, async (t) => {
  const { state, clock, events, failing } = await start(t, [moving("a", 1), moving("b", 1)], "pods/shop/a");
  await soon("the other is abandoned", () => state.pod("shop", "b")?.record.drainingSince === undefined);
  assert.deepEqual(
    events.map(({ name, reason }) => `${name} ${reason}`),
    ["a ReconcileFailed"],
  );
  failing.key = "";
  await soon("it is tried again", () => {
    clock.advance(1_000);
    return state.pod("shop", "a")?.record.drainingSince === undefined;
  });
});

test("moves only pods that may run beside their replacement, and whose workload is settled", () => {
  const pod = aPod({ name: "a" });
  const known = (spec: object) => ({
    pod,
    resource: aWorkloadEntry({ spec: { scaling: { replicas: 1 }, ...spec } }),
    siblings: [pod],
    isReady: () => true,
  });
  assert.equal(whyNotMoved(known({})), undefined);
  const recreated = known({ updateStrategy: { type: "Recreate" } });
  assert.match(whyNotMoved(recreated) ?? "", /Recreate/);
  const { resource } = known({});
  assert.match(whyNotMoved({ ...known({}), resource: undefined }) ?? "", /container services/);
  const deleting = resource && { ...resource, record: { ...resource.record, deleting: true } };
  assert.match(whyNotMoved({ ...known({}), resource: deleting }) ?? "", /being deleted/);
  assert.match(whyNotMoved({ ...known({}), pod: moving("a", 1) }) ?? "", /leaving/);
  assert.match(whyNotMoved({ ...known({}), pod: aPod({ stopping: true }) }) ?? "", /stopping/);
  assert.equal(isSettled({ ...known({}), isReady: () => false }), false);
  assert.equal(isSettled({ ...known({}), siblings: [] }), false);
  const [hash = ""] = resource?.workload?.currentHashes ?? [];
  const current = { ...pod, record: { ...pod.record, templateHash: hash } };
  assert.equal(isSettled({ ...known({}), siblings: [current] }), true);
  assert.equal(isSettled({ ...known({}), siblings: [pod] }), false, "of another revision");
});

/** Asserts that the condition becomes true within a limited number of turns of the event loop. */
async function soon(what: string, holds: () => boolean): Promise<void> {
  for (let turns = 0; turns < 500 && !holds(); turns++) await settled();
  assert.ok(holds(), `not after 500 turns: ${what}`);
}

async function start(
  t: TestContext,
  pods: readonly PodEntry[],
  failingKey = "",
  rebalance?: RebalanceSchedule,
) {
  const view = await aView(t, { nodes: [aNode()], pods });
  const failing = { key: failingKey };
  const store: Store = Object.create(view.store, {
    txn: {
      value: async (...[compares, ops]: Parameters<Store["txn"]>) => {
        if (ops.some((op) => op.type === "put" && op.key === failing.key)) throw new Error("poison");
        return view.store.txn(compares, ops);
      },
    },
  });
  const events: EventInput[] = [];
  const suggestions = { count: 0 };
  const controller = new RebalanceController({
    ...view,
    store,
    log: pino({ level: "silent" }),
    events: { record: (event) => void events.push(event) },
    rebalance,
    suggest: () => {
      suggestions.count++;
      return { moves: [], emptied: [], summary: "" };
    },
  });
  t.after(() => controller.close());
  return { ...view, events, failing, suggestions };
}

function moving(name: string, sinceMs: number): PodEntry {
  const pod = aPod({ name });
  return { ...pod, record: { ...pod.record, drainingSince: toTimestamp(sinceMs), drainCause: "rebalance" } };
}
