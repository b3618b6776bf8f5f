import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { DrainRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode } from "../../../test/support/entries.ts";
import { settled, until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { DrainController } from "./controller.ts";

const LIMIT = { timeout: 180_000 };

test("a node that was to come back takes pods again once it has booted", LIMIT, async (t) => {
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

async function aDrainedNode(t: TestContext, drain: Parameters<typeof DrainRecord.fromPartial>[0]) {
  const node = aNode();
  node.record.unschedulable = true;
  node.record.drain = DrainRecord.fromPartial(drain);
  const report = { ...node.report, bootId: "now" };
  const view = await aView(t, { nodes: [{ ...node, report: report as typeof node.report }] });
  const controller = new DrainController({
    ...view,
    log: pino({ level: "silent" }),
    events: { record: () => {} },
    unschedulable: { get: () => undefined },
  });
  t.after(() => controller.close());
  return view;
}
