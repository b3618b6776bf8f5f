import assert from "node:assert/strict";
import { test } from "node:test";
import { DrainRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { poison } from "../../../test/support/poison.ts";
import { until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { DrainController } from "./controller.ts";

const LIMIT = { timeout: 180_000 };

for (const [what, where] of [
  ["evaluated", "refs"],
  ["changed", "record"],
] as const) {
  test(
    `a pod that can't be ${what} is reported, and the drain marks the node's other pods`,
    LIMIT,
    async (t) => {
      const node = aNode({ name: "n1" });
      node.record.drain = DrainRecord.fromPartial({});
      const names = ["a", "poison", "z"];
      const view = await aView(t, {
        nodes: [node],
        resources: names.map((name) => aWorkloadEntry({ name })),
        pods: names.map((name) => aPod({ name, workload: name })),
      });
      const entry = view.state.pod("shop", "poison");
      if (where === "refs") poison(entry, "refs");
      else poison(entry?.record, "labels");
      const events: string[] = [];
      const controller = new DrainController({
        ...view,
        log: pino({ level: "silent" }),
        events: { record: ({ kind, name, reason }) => void events.push(`${kind} ${name} ${reason}`) },
        unschedulable: { get: () => undefined },
      });
      t.after(() => controller.close());
      const leaves = (name: string) => view.state.pod("shop", name)?.record.drainingSince !== undefined;
      await until("the others leave", () => leaves("a") && leaves("z"));
      assert.equal(leaves("poison"), false);
      assert.deepEqual(events, ["pod poison ReconcileFailed"]);
      assert.equal(view.state.node("n1")?.record.drain?.finishedAt, undefined, "the drain waits for the pod");
    },
  );
}
