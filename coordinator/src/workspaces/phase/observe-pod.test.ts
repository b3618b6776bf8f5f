import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspaceConditionBool, WorkspacePhase } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage } from "@forage/proto/forage/workspaces/v1/workspaces";
import { aPod } from "../../../test/support/entries.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { WORKSPACES_SCHEMA } from "../settings.ts";
import { advance } from "./advance.ts";
import type { Observation } from "./observation.ts";

const { TRUE, FALSE } = WorkspaceConditionBool;
const { PENDING, CREATING, INITIALIZING, RUNNING, STOPPING } = WorkspacePhase;
const NODE = { ready: true, message: "", seen: true, revoked: false };

test("passes PENDING, CREATING, INITIALIZING and RUNNING at a start, and reports when the image is pulled", () => {
  const unbound = advance(anInstance(), observe({ node: "" }));
  assert.deepEqual([unbound.phase, unbound.conditions?.deployed], [PENDING, TRUE]);
  const pulling = advance(unbound, observe({ waiting: "ImagePull" }));
  assert.deepEqual([pulling.phase, pulling.conditions?.pullingImages], [CREATING, TRUE]);
  const filling = { ...pulling, contentStage: ContentStage.INITIALIZING };
  const initializing = advance(filling, observe({ waiting: "ContainerCreating" }));
  assert.deepEqual([initializing.phase, initializing.conditions?.pullingImages], [INITIALIZING, FALSE]);
  const filled = { ...initializing, contentStage: ContentStage.READY };
  assert.equal(advance(filled, observe({ waiting: "ContainerCreating" })).phase, INITIALIZING);
  const running = advance(filled, observe({ ready: true }));
  assert.equal(running.phase, RUNNING);
  assert.equal(advance(running, observe({})).phase, RUNNING, "it stays RUNNING when its probe fails");
});

test("ends the start when the registry refuses the image, and keeps the first reason", () => {
  const failed = advance(anInstance(), observe({ waiting: "ErrImagePull", message: "no such image" }));
  assert.equal(failed.phase, STOPPING);
  assert.equal(failed.conditions?.failed, "cannot pull image image:1: no such image");
  assert.equal(failed.stop?.cause, "failure");
  const later = advance({ ...failed, contentLost: true }, observe({ waiting: "ErrImagePull" }));
  assert.equal(later.conditions?.failed, failed.conditions?.failed);
});

function anInstance(): InstanceRecord {
  return InstanceRecord.fromPartial({
    ...{ id: "instance", phase: PENDING, podCreated: true, podUid: "uid", createdAt: toTimestamp(0) },
  });
}

interface PodState {
  readonly node?: string;
  readonly ready?: boolean;
  /** The reason for which the container waits. */
  readonly waiting?: string;
  readonly message?: string;
}

function observe({ node = "n1", ready = false, waiting, message = "" }: PodState): Observation {
  const state = waiting && ({ $case: "waiting", value: { reason: waiting, message } } as const);
  const containers = state ? [{ name: "workspace", image: "image:1", state }] : [];
  const status = { phase: ready ? PodPhase.RUNNING : PodPhase.PENDING, ready, containers };
  const entry = aPod({ name: "ws-instance", namespace: "workspaces", kind: "workspace", node, status });
  const pod = { ...entry, record: { ...entry.record, uid: "uid" } };
  return {
    ...{ pod, node: NODE, activity: undefined, unschedulable: "", nowMs: 1_000, upSinceMs: 0 },
    ...{ since: (atMs) => atMs, settings: WORKSPACES_SCHEMA.parse({ enabled: true }) },
  };
}
