import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { EvictionController } from "./controller.ts";

test("evicts no ended pod of a job, whose logs are kept", {
  timeout: 120_000,
}, async (t) => {
  const node = aNode({ name: "n1" });
  node.record.taints = [NodeTaint.fromPartial({ key: "gpu", effect: "NoExecute", addedAt: toTimestamp(1) })];
  const status = { phase: PodPhase.SUCCEEDED };
  const view = await aView(t, {
    nodes: [node],
    pods: [
      aPod({ name: "ended", kind: "job", status, job: { run: "r", counted: "succeeded" } }),
      aPod({ name: "open", kind: "job", job: { run: "r" } }),
    ],
  });
  const log = pino({ level: "silent" });
  const controller = new EvictionController({ ...view, log, events: { record: () => {} } });
  t.after(() => controller.close());
  const isStopping = (name: string) => view.state.pod("shop", name)?.record.stoppingSince !== undefined;
  await until("the other has to go", () => isStopping("open"));
  assert.equal(isStopping("ended"), false);
});
