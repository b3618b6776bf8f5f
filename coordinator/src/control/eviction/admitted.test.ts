import assert from "node:assert/strict";
import { test } from "node:test";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { EvictionController } from "./controller.ts";
import { MassLoss } from "./mass-loss.ts";

test("a mass loss also saves the remaining pods of a node whose evictions had begun before", {
  timeout: 60_000,
}, async (t) => {
  const patient = aPod({ name: "patient" });
  assert.ok(patient.record.template);
  const toleration = { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" };
  patient.record.template.podConfig = PodConfig.fromPartial({
    tolerations: [{ ...toleration, tolerationSeconds: 300n }],
  });
  const view = await aView(t, { nodes: [aNode({ name: "n1" })], pods: [aPod({ name: "quick" }), patient] });
  const massLoss = new MassLoss({ recoveryMs: 30_000 });
  massLoss.update({ nodes: 4, lost: 1 }, view.clock.monotonicMs());
  const held: string[] = [];
  const log = pino({ level: "silent" });
  const events = { record: ({ reason }: { readonly reason: string }) => void held.push(reason) };
  const controller = new EvictionController({ ...view, log, events, massLoss });
  t.after(() => controller.close());
  const stopped = (name: string) => view.state.pod("shop", name)?.record.stoppingSince !== undefined;
  const health = { ready: false, message: "gone", lastSeenMs: 1, sinceMs: view.clock.nowMs() };
  view.state.setNodeHealth("n1", health, true);
  await until("it waits for the first toleration", () => view.clock.pending > 0);
  view.clock.advance(30_000);
  await until("the first is stopped", () => stopped("quick"));
  await until("it waits for the second toleration", () => view.clock.pending > 0);
  massLoss.update({ nodes: 4, lost: 4 }, view.clock.monotonicMs());
  view.clock.advance(300_000);
  await until("the second is held back", () => held.includes("EvictionPaused"));
  assert.equal(stopped("patient"), false);
});
