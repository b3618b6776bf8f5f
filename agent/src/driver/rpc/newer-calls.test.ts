import assert from "node:assert/strict";
import { test } from "node:test";
import { TaskConfigAdditions } from "@forage/proto/forage/nomad/v1/additions";
import { StartTaskResponse, TaskConfig, TaskState } from "@forage/proto/plugins/drivers/proto/driver";
import { taskOptions } from "../../../test/driver/driver-options.ts";
import { labelsOf } from "../tasks/task-labels.ts";
import { NEWER_DRIVER_SERVICE, type NewerTaskConfig } from "./newer-calls.ts";

const OLD = TaskConfig.encode(
  TaskConfig.fromPartial({
    ...{ id: "a/web/01234567", name: "web" },
    env: { NOMAD_JOB_ID: "of-env", NOMAD_NODE_ID: "n-env" },
  }),
).finish();
const ADDITIONS = {
  ...{ jobId: "periodic/1", parentJobId: "periodic", namespace: "team", nodeName: "n1" },
  mounts: [{ taskPath: "/data", selinuxLabel: "z" }],
};
const ADDED = TaskConfigAdditions.encode(TaskConfigAdditions.fromPartial(ADDITIONS)).finish();

/** A StartTaskRequest: field 1 is the task, whose length is a varint of two bytes. */
const request = (...parts: Uint8Array[]): Buffer => {
  const task = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(0x0a, (task.length & 0x7f) | 0x80, task.length >> 7), task]);
};
const read = (...parts: Uint8Array[]): NewerTaskConfig => {
  const { task } = NEWER_DRIVER_SERVICE.startTask.requestDeserialize(request(...parts));
  assert.ok(task);
  return task;
};
const labels = (task: NewerTaskConfig) =>
  labelsOf(task, taskOptions({ image: "i" }), {
    extraLabels: ["job_id", "parent_job_id", "namespace", "node_name", "node_id"],
  });

test("reads fields of a task that newer versions of Nomad send before the environment", () => {
  const task = read(OLD, ADDED);
  assert.deepEqual([task.id, task.name], ["a/web/01234567", "web"]);
  assert.equal(task.additions?.mounts[0]?.selinuxLabel, "z");
  const found = labels(task);
  const value = (name: string) => found[`com.hashicorp.nomad.${name}`];
  assert.deepEqual(["job_id", "parent_job_id", "namespace", "node_name", "node_id"].map(value), [
    "periodic/1",
    "periodic",
    "team",
    "n1",
    "n-env",
  ]);
  assert.equal(labels(read(OLD))["com.hashicorp.nomad.job_id"], "of-env");
});

test("the handle returns the fields that newer versions of Nomad sent, and each mount once", () => {
  const config: NewerTaskConfig = {
    ...read(OLD, ADDED),
    mounts: [{ taskPath: "/data", hostPath: "/d", readonly: false, propagationMode: "" }],
  };
  const handle = { version: 1, config, state: TaskState.RUNNING, driverState: Buffer.alloc(0) };
  const response = StartTaskResponse.fromPartial({ handle });
  const bytes = NEWER_DRIVER_SERVICE.startTask.responseSerialize({ ...response, handle });
  // A parser of the frozen contract ignores the additions.
  const { version, config: whole, state } = StartTaskResponse.decode(bytes).handle ?? {};
  assert.deepEqual([version, state, whole?.name], [1, TaskState.RUNNING, "web"]);
  assert.deepEqual(whole?.mounts, config.mounts);
  const added = TaskConfigAdditions.encode({ ...TaskConfigAdditions.fromPartial(ADDITIONS), mounts: [] });
  assert.ok(bytes.includes(Buffer.from(added.finish())));
});
