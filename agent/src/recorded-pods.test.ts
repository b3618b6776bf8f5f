import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { aHost } from "../test/a-host.ts";
import { aRichAssignment, aShell } from "../test/a-rich-assignment.ts";
import { anAssignment } from "../test/an-assignment.ts";
import { Journal } from "./journal/journal.ts";
import { JournalKey } from "./journal/journal-key.ts";
import { encodePodState } from "./journal/pod-state.ts";
import { encodeRecord, RECORD_KIND } from "./journal/record-frame.ts";
import { AssignmentReader } from "./link/assignment-reader.ts";
import { EMPTY_MEMORY, type PodMemory } from "./pods/pod.ts";
import { toPodState } from "./pods/stored-memory.ts";
import type { RecordedPod } from "./pods/supervisor-options.ts";
import { recordedPods } from "./recorded-pods.ts";
import { encodeBootId, resetAfterReboot } from "./reset-after-reboot.ts";

const SEEDS = 150;
const KEY = new JournalKey(Buffer.alloc(32, 7), "test");
const signal = new AbortController().signal;

test("an intact record that can't be parsed affects only its own pod", async (t) => {
  const host = await aJournal(t);
  const whole = PodAssignment.encode(host.victim).finish();
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const payload = mutated(Buffer.from(whole), randomOf(seed).next);
    await writeFile(host.podFile, encodeRecord(RECORD_KIND.sealedPod, await KEY.seal("b", payload)));
    const pods = await host.reopen();
    for (const uid of ["a", "c"]) assertRestored(pods.get(uid), host.sound.get(uid), seed);
    assert.ok(pods.has("b"), `seed ${seed}: its containers are left alone`);
  }
});

test("an intact state that can't be parsed affects only its own pod", async (t) => {
  const host = await aJournal(t);
  const text = encodePodState(toPodState(MEMORY)).toString();
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const random = randomOf(seed).next;
    const payload =
      random() < 0.5 ? mutated(Buffer.from(text), random) : Buffer.from(otherTypes(text, random));
    await writeFile(host.stateFile, encodeRecord(RECORD_KIND.state, payload));
    const pods = await host.reopen();
    for (const uid of ["a", "c"]) assertRestored(pods.get(uid), host.sound.get(uid), seed);
    assert.deepEqual(pods.get("b")?.pod, host.sound.get("b")?.pod, `seed ${seed}`);
  }
});

function assertRestored(found: RecordedPod | undefined, sound: RecordedPod | undefined, seed: number): void {
  assert.deepEqual(found?.pod, sound?.pod, `seed ${seed}`);
  assert.equal(found?.damaged, false, `seed ${seed}`);
  assert.equal(found?.memory?.containers.main?.attempt, 2, `seed ${seed}`);
}

const MEMORY: PodMemory = {
  ...EMPTY_MEMORY,
  sandbox: { podUid: "b", namespacePath: "/run/netns/x", address: "10.64.0.2" },
  ports: [{ container: "main", containerPort: 80, protocol: "TCP", hostPort: 20_000 }],
  begun: "main",
  containers: {
    main: {
      ...{ attempt: 2, phase: "started", restarts: 1, crashes: 1, notBeforeMs: 0, containerId: "id" },
      lastTermination: {
        ...{ exitCode: 1, signal: 0, reason: "Error", message: "", startedAtMs: 1, finishedAtMs: 2 },
      },
    },
  },
};

/** Three pods with the files of pod `b`. */
async function aJournal(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "forage-recorded-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const victim = aRichAssignment({ uid: "b", outDir: "/out", main: aShell("main", "sleep 1") });
  const open = () => Journal.open({ dir, key: KEY, signal });
  const journal = await open();
  const pods = [anAssignment({ uid: "a" }), victim, anAssignment({ uid: "c" })];
  await journal.replace({ clusterId: "c", revision: 1n, pods });
  for (const uid of ["a", "b", "c"]) await journal.saveState(uid, toPodState(MEMORY));
  await journal.close();
  const reopen = async () => {
    const again = await open();
    const reader = new AssignmentReader(aHost(), new Map(), () => undefined);
    const recorded = new Map(recordedPods(again, reader).map((it) => [it.uid, it]));
    // The same states after a reboot of the host.
    await writeFile(join(dir, "boot-id"), encodeBootId("1"));
    await resetAfterReboot({
      ...{ journal: again, bootId: "2", nowMs: 1, noteDamage: () => undefined },
      ...{ bootIdFile: join(dir, "boot-id"), pendingFile: join(dir, "pending") },
    });
    await again.close();
    return recorded;
  };
  const sound = await reopen();
  assert.deepEqual([...sound.keys()].sort(), ["a", "b", "c"]);
  const podFile = join(dir, "pods", "b.1.pod");
  return { victim, sound, reopen, podFile, stateFile: join(dir, "states", "b.state") };
}

/** Returns a copy with some bytes overwritten, removed or inserted. */
function mutated(bytes: Buffer, random: () => number): Buffer {
  const at = () => Math.floor(random() * bytes.length);
  const byte = () => Math.floor(random() * 256);
  const kind = random();
  if (kind < 0.2) return Buffer.from(Array.from({ length: Math.floor(random() * 200) }, byte));
  if (kind < 0.4) return bytes.subarray(0, at());
  const copy = Buffer.from(bytes);
  for (let count = 1 + Math.floor(random() * 8); count > 0; count -= 1) copy.writeUInt8(byte(), at());
  if (kind < 0.8) return copy;
  return Buffer.concat([copy.subarray(0, at()), Buffer.from([byte(), byte()]), copy.subarray(at())]);
}

/** Replaces one value of the JSON text by one of another type or size. */
function otherTypes(text: string, random: () => number): string {
  const others = [
    "null",
    "-1",
    "1e400",
    "[]",
    "{}",
    '""',
    "true",
    '"__proto__"',
    '{"__proto__":{"attempt":1}}',
  ];
  const values = [...text.matchAll(/(?<=:)("[^"]*"|[0-9]+|true|false|\{[^{}]*\}|\[[^[\]]*\])/g)];
  const value = values[Math.floor(random() * values.length)];
  const other = others[Math.floor(random() * others.length)] ?? "null";
  if (value === undefined) return other;
  return text.slice(0, value.index) + other + text.slice(value.index + value[0].length);
}
