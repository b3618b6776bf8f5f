import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { Journal } from "./journal.ts";
import { JournalKey } from "./journal-key.ts";
import { encodeRecord, RECORD_KIND } from "./record-frame.ts";

const signal = new AbortController().signal;
const KEY = aKey(1);
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "forage-journal-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test("a damaged pod that is no longer assigned does not count as damaged", async () => {
  await (await open()).replace({ clusterId: "c", revision: 1n, pods: [aPod("a"), aPod("b")] });
  const journal = await open(aKey(2));
  assert.deepEqual([...journal.damaged].sort(), ["a", "b"]);
  await journal.apply({ revision: 2n, upserts: [], removals: ["a"] });
  assert.deepEqual([...journal.damaged], ["b"]);
});

test("rejects an unencrypted record in another pod's place", async () => {
  await (await open()).replace({ clusterId: "c", revision: 1n, pods: [aPod("a"), aPod("b")] });
  const plain = PodAssignment.encode(aPod("a")).finish();
  await writeFile(join(dir, "pods", "b.1.pod"), encodeRecord(RECORD_KIND.pod, plain));
  const again = await open();
  assert.deepEqual([...again.desired().keys()], ["a"]);
  assert.deepEqual([...again.damaged], ["b"]);
});

function open(key = KEY): Promise<Journal> {
  return Journal.open({ dir, key, signal });
}

function aKey(fill: number): JournalKey {
  return new JournalKey(Buffer.alloc(32, fill), `key ${fill}`);
}

function aPod(uid: string, specHash = "one"): PodAssignment {
  return PodAssignment.fromPartial({ uid, name: `pod-${uid}`, labels: { app: uid }, specHash });
}
