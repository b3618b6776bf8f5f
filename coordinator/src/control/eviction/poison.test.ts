import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { poison } from "../../../test/support/poison.ts";
import { until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Store } from "../../store/index.ts";
import { EvictionController } from "./controller.ts";
import { hasPodsToReplace } from "./pending-eviction.ts";

const LIMIT = { timeout: 180_000 };

for (const [what, property] of [
  ["evaluated", "boundAt"],
  ["stopped", "labels"],
] as const) {
  test(`a pod that can't be ${what} is reported, and the node's other pods are evicted`, LIMIT, async (t) => {
    const view = await aView(t, {
      nodes: [tainted("n1")],
      pods: [aPod({ name: "a" }), aPod({ name: "poison" }), aPod({ name: "z" })],
    });
    poison(view.state.pod("shop", "poison")?.record, property);
    const { stopped, events } = start(t, view);
    await until("the others are stopped", () => stopped("a") && stopped("z"));
    assert.equal(view.state.pod("shop", "poison")?.record.stoppingSince, undefined);
    assert.deepEqual(
      events.map(({ kind, name, reason }) => `${kind} ${name} ${reason}`),
      ["pod poison ReconcileFailed"],
    );
  });
}

test("a transaction that the store rejects doesn't affect other evictions", LIMIT, async (t) => {
  const long = (name: string) => aPod({ name, labels: { long: "x".repeat(900_000) } });
  const view = await aView(t, { nodes: [tainted("n1")], pods: [long("a"), long("poison"), long("z")] });
  const store: Store = Object.create(view.store, {
    txn: {
      value: async (...[compares, ops]: Parameters<Store["txn"]>) => {
        if (ops.some((op) => op.type === "put" && op.key === "pods/shop/poison")) throw new Error("poison");
        return view.store.txn(compares, ops);
      },
    },
  });
  const { stopped } = start(t, { ...view, store });
  await until("the others are stopped", () => stopped("a") && stopped("z"));
  assert.equal(stopped("poison"), false);
});

test("a pod that can't be evaluated doesn't hide that the node has pods to replace", LIMIT, async (t) => {
  const view = await aView(t, { nodes: [tainted("n1")], pods: [aPod({ name: "a" }), aPod({ name: "z" })] });
  poison(view.state.pod("shop", "a")?.record, "boundAt");
  assert.equal(hasPodsToReplace(view.state, "n1", view.clock.nowMs()), true);
  poison(view.state.pod("shop", "z")?.record, "boundAt");
  assert.equal(hasPodsToReplace(view.state, "n1", view.clock.nowMs()), false);
});

function start(t: Parameters<typeof aView>[0], view: Awaited<ReturnType<typeof aView>>) {
  const events: { readonly kind: string; readonly name: string; readonly reason: string }[] = [];
  const controller = new EvictionController({
    ...view,
    log: pino({ level: "silent" }),
    events: { record: (event) => void events.push(event) },
  });
  t.after(() => controller.close());
  const stopped = (name: string) => view.state.pod("shop", name)?.record.stoppingSince !== undefined;
  return { stopped, events };
}

function tainted(name: string) {
  const node = aNode({ name });
  node.record.taints = [
    NodeTaint.fromPartial({ key: "gpu", value: "yes", effect: "NoExecute", addedAt: toTimestamp(1_000) }),
  ];
  return node;
}
