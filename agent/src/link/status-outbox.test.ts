import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import type { PodStatus } from "../pods/decide/pod-status.ts";
import { StatusOutbox } from "./status-outbox.ts";

test("a finished wait leaves no listener on the connection's signal", async () => {
  const outbox = new StatusOutbox();
  const { signal } = new AbortController();

  for (let round = 0; round < 3; round += 1) {
    const filled = outbox.filled(signal);
    outbox.put(aStatus("a"));
    await filled;
    outbox.takeBatch();
  }

  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("an abort ends the wait", async () => {
  const outbox = new StatusOutbox();
  const connection = new AbortController();

  const filled = outbox.filled(connection.signal);
  connection.abort();

  await filled;
  assert.deepEqual(outbox.takeBatch(), []);
});

function aStatus(uid: string): PodStatus {
  return {
    ...{ uid, namespace: "default", name: uid, specHash: "1", phase: "PENDING", ready: false },
    ...{ reason: "", message: "", podIp: "", podIps: [], containers: [], hostPorts: [] },
  };
}
