import assert from "node:assert/strict";
import { test } from "node:test";
import { RevisionRecord } from "@forage/proto/forage/store/v1/store";
import { aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { HandFedState } from "../../../test/support/hand-fed-state.ts";
import { encodeRecord } from "../../model/codec.ts";
import { revisionKey } from "../../model/keys.ts";
import { listRevisions } from "./revisions.ts";

const SERVICE = { namespace: "shop", kind: "container_service", name: "web" };

test("lists revisions newest first, each with its pods that are not stopping", () => {
  const world = new HandFedState();
  const entry = aWorkloadEntry({});
  const pods = [
    aPod({ name: "web-1", hash: "old" }),
    aPod({ name: "web-2", hash: "old", stopping: true }),
    aPod({ name: "web-3", hash: entry.workload?.templateHash ?? "" }),
  ];
  world.put({ resources: [entry], pods });
  for (const [number, templateHash] of [
    [1, "old"],
    [2, entry.workload?.templateHash ?? ""],
  ] as const) {
    const record = RevisionRecord.fromPartial({ ...SERVICE, number, templateHash });
    const key = revisionKey(SERVICE.namespace, SERVICE.kind, SERVICE.name, number);
    world.write({ type: "put", key, value: encodeRecord(RevisionRecord, record) });
  }
  const { revisions } = listRevisions(SERVICE, world.state);
  assert.deepEqual(
    revisions.map(({ number, inForce, pods: count }) => [number, inForce, count]),
    [
      [2, true, 1],
      [1, false, 1],
    ],
  );
});

test("refuses other kinds, and services that don't exist", () => {
  const { state } = new HandFedState();
  assert.throws(() => listRevisions(SERVICE, state), { message: /has no container_service\/web/ });
  assert.throws(() => listRevisions({ ...SERVICE, namespace: "" }, state), { message: /must not be empty/ });
});
