import assert from "node:assert/strict";
import { test } from "node:test";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView, opsOf } from "../../../test/support/view.ts";
import { EvictionController } from "./controller.ts";
import { MassLoss } from "./mass-loss.ts";

test("a mass loss stops further evictions from a node whose evictions have begun", {
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

const GONE = { ready: false, message: "gone", lastSeenMs: 1 };
const log = pino({ level: "silent" });

test("a node that was lost, returned and is lost again needs a new token of the eviction pace", {
  timeout: 60_000,
}, async (t) => {
  const view = await aView(t, { nodes: [aNode({ name: "n1" })] });
  const massLoss = new MassLoss({ recoveryMs: 0 });
  massLoss.update({ nodes: 10, lost: 1 }, view.clock.monotonicMs());
  const held: string[] = [];
  const noting = pino({}, { write: (line) => void held.push(JSON.parse(line).event) });
  const controller = new EvictionController({
    ...{ ...view, log: noting, events: { record: () => {} }, massLoss },
  });
  t.after(() => controller.close());
  const stopped = (name: string) => view.state.pod("shop", name)?.record.stoppingSince !== undefined;
  // The pace allows two nodes at once, and then one in ten seconds.
  for (const name of ["first", "second", "third"]) {
    const { revision } = await view.store.txn([], opsOf({ pods: [brief(name)] }));
    await view.state.reached(revision);
    view.state.setNodeHealth("n1", { ...GONE, sinceMs: view.clock.nowMs() }, true);
    await until("its loss is on record", () => view.state.node("n1")?.record.unreachableSince !== undefined);
    view.clock.advance(1_000);
    if (name === "third") break;
    await until("it is stopped", () => stopped(name));
    view.state.setNodeHealth("n1", { ...GONE, ready: true, sinceMs: view.clock.nowMs() }, true);
    await until("its taint is gone", () => view.state.node("n1")?.record.unreachableSince === undefined);
  }
  await until("it waits for its turn", () => held.includes("eviction-paused"));
  assert.equal(stopped("third"), false);
});

/** Returns a pod that tolerates the loss of its node for one second. */
function brief(name: string) {
  const pod = aPod({ name });
  const toleration = { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" };
  assert.ok(pod.record.template);
  pod.record.template.podConfig = PodConfig.fromPartial({
    tolerations: [{ ...toleration, tolerationSeconds: 1n }],
  });
  return pod;
}

test("evaluates nodes with paused evictions again when another node returns", {
  timeout: 60_000,
}, async (t) => {
  const nodes = [aNode({ name: "n1" }), aNode({ name: "n2" })];
  const view = await aView(t, { nodes, pods: [aPod({ name: "web" })] });
  const massLoss = new MassLoss({ recoveryMs: 0 });
  massLoss.update({ nodes: 2, lost: 2 }, view.clock.monotonicMs());
  const held: string[] = [];
  const events = { record: ({ reason }: { readonly reason: string }) => void held.push(reason) };
  const controller = new EvictionController({ ...view, log, events, massLoss });
  t.after(() => controller.close());
  for (const name of ["n1", "n2"])
    view.state.setNodeHealth(name, { ...GONE, sinceMs: view.clock.nowMs() }, true);
  await until("it waits for the toleration", () => view.clock.pending > 0);
  view.clock.advance(30_000);
  await until("it is held back", () => held.includes("EvictionPaused"));
  massLoss.update({ nodes: 2, lost: 1 }, view.clock.monotonicMs());
  view.state.setNodeHealth("n2", { ...GONE, ready: true, sinceMs: view.clock.nowMs() }, true);
  await until("its pod is replaced", () => {
    view.clock.advance(1_000);
    return view.state.pod("shop", "web")?.record.stoppingSince !== undefined;
  });
});
