import assert from "node:assert/strict";
import { test } from "node:test";
import { testPodVolumes } from "../../test/volumes-contract.ts";
import { FakeVolumes } from "./fake.ts";
import { VolumeError } from "./volumes.ts";

testPodVolumes("fake", async () => {
  const volumes = new FakeVolumes();
  return {
    open() {
      volumes.restart();
      return volumes;
    },
  };
});

test("a fault applies until it is removed", async () => {
  const { signal } = new AbortController();
  const volumes = new FakeVolumes();
  volumes.faults.set("prepare a", new VolumeError("UNAVAILABLE", "nfs nas doesn't answer"));
  const pod = { uid: "a", volumes: [] };
  await assert.rejects(volumes.prepare(pod, signal), /doesn't answer/);
  await volumes.prepare({ ...pod, uid: "b" }, signal);
  volumes.faults.clear();
  await volumes.prepare(pod, signal);
  assert.deepEqual([...volumes.pods.keys()], ["b", "a"]);
});
