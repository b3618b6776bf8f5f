import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeVolumes } from "../volumes/fake.ts";
import { VolumeError } from "../volumes/volumes.ts";
import { afterRecovery } from "./after-recovery.ts";

test("rejects preparing and releasing volumes before recovery", async () => {
  const { signal } = new AbortController();
  const real = new FakeVolumes();
  let isRecovered = false;
  const volumes = afterRecovery(real, () => isRecovered);
  const pod = {
    uid: "p",
    volumes: [{ name: "data", source: { type: "emptyDir", medium: "disk" } }],
  } as const;
  const early = (error: unknown) => error instanceof VolumeError && error.code === "UNAVAILABLE";
  await assert.rejects(volumes.prepare(pod, signal), early);
  await assert.rejects(volumes.release("p", signal), early);
  await volumes.recover({ knownUids: new Set(["p"]), inUse: [] }, signal);
  isRecovered = true;
  await volumes.prepare(pod, signal);
  assert.deepEqual([...real.pods.keys()], ["p"]);
  await volumes.release("p", signal);
  assert.deepEqual([...real.pods.keys()], []);
});
