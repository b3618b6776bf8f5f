import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { DrainRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { settled, until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { DrainController } from "./controller.ts";

const LIMIT = { timeout: 180_000 };

test("uncordons a node after a drain that ends with its reboot", LIMIT, async (t) => {
  const { state } = await aDrainedNode(t, { uncordonOnReturn: true, bootId: "before" });
  await until("it takes pods", () => state.node("n1")?.record.unschedulable === false);
  assert.equal(state.node("n1")?.record.drain, undefined);
});

for (const [what, drain] of [
  ["has not booted since", { uncordonOnReturn: true, bootId: "now" }],
  ["was not to come back", { uncordonOnReturn: false, bootId: "before" }],
] as const)
  test(`a drained node that ${what} takes no pods`, LIMIT, async (t) => {
    const { state } = await aDrainedNode(t, drain);
    await until("the drain is over", () => state.node("n1")?.record.drain?.finishedAt !== undefined);
    await settled();
    assert.equal(state.node("n1")?.record.unschedulable, true);
  });

test("uncordons a rebooted node only once its heartbeats arrive", LIMIT, async (t) => {
  const { state } = await aDrainedNode(t, { uncordonOnReturn: true, bootId: "before" }, { isReady: false });
  await until("the drain is over", () => state.node("n1")?.record.drain?.finishedAt !== undefined);
  await settled();
  const health = state.node("n1")?.health;
  assert.ok(health);
  assert.equal(state.node("n1")?.record.unschedulable, true);
  state.setNodeHealth("n1", { ...health, ready: true }, true);
  await until("it takes pods", () => state.node("n1")?.record.unschedulable === false);
});

test("unmarks the pods of a cancelled drain, except pods that are stopping", LIMIT, async (t) => {
  const pods = [aPod({ name: "a" }), aPod({ name: "b", stopping: true })];
  for (const { record } of pods) {
    record.drainingSince = toTimestamp(1);
    record.drainCause = "drain";
  }
  const view = await aView(t, { nodes: [aNode()], pods });
  const stopping = view.state.podByUid("uid-b")?.revision;
  startDrains(t, view);
  await until("the mark is gone", () => view.state.podByUid("uid-a")?.record.drainCause === "");
  assert.equal(view.state.podByUid("uid-a")?.record.drainingSince, undefined);
  await settled();
  assert.equal(view.state.podByUid("uid-b")?.revision, stopping);
});

async function aDrainedNode(
  t: TestContext,
  drain: Parameters<typeof DrainRecord.fromPartial>[0],
  { isReady = true } = {},
) {
  const node = aNode({ ready: isReady });
  node.record.unschedulable = true;
  node.record.drain = DrainRecord.fromPartial(drain);
  const report = { ...node.report, bootId: "now" };
  const view = await aView(t, { nodes: [{ ...node, report: report as typeof node.report }] });
  startDrains(t, view);
  return view;
}

function startDrains(t: TestContext, view: Awaited<ReturnType<typeof aView>>): void {
  const controller = new DrainController({
    ...view,
    log: pino({ level: "silent" }),
    events: { record: () => {} },
    unschedulable: { get: () => undefined },
  });
  t.after(() => controller.close());
}
