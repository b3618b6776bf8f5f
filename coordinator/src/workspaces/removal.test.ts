import assert from "node:assert/strict";
import { test } from "node:test";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { objectKey } from "../model/keys.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { activityKey, instanceKey, liveKey, secretsKey } from "./keys.ts";
import { secretNameOf } from "./pod/environment-secret.ts";
import { releaseWrites, removalWrites } from "./removal.ts";
import type { WorkspaceView } from "./view.ts";

const RECORD = InstanceRecord.fromPartial({ id: "i1", namespace: "dev", metadata: { metaId: "m1" } });

test("removes the secret with the environment together with its instance if the secret exists", () => {
  const removed = (hasSecret: boolean) => {
    const objects = { get: () => (hasSecret ? {} : undefined) };
    return removalWrites(RECORD, { state: { objects } as unknown as ClusterView }).ops;
  };
  const remove = (key: string) => ({ type: "delete", key });
  const own = [instanceKey("i1"), secretsKey("i1"), activityKey("i1")].map(remove);
  assert.deepEqual(removed(false), own);
  assert.deepEqual(removed(true), [...own, remove(objectKey(secretNameOf(RECORD)))]);
});

test("releases a meta id only for the instance that holds it", () => {
  const released = (instanceId: string | undefined) => {
    const entry =
      instanceId === undefined ? undefined : { key: liveKey("m1"), revision: 7, record: { instanceId } };
    return releaseWrites(RECORD, { live: () => entry } as unknown as WorkspaceView);
  };
  assert.deepEqual(released("i1"), {
    compares: [{ type: "mod-revision", key: liveKey("m1"), revision: 7 }],
    ops: [{ type: "delete", key: liveKey("m1") }],
  });
  assert.deepEqual(released("i2"), {});
  assert.deepEqual(released(undefined), {});
});
