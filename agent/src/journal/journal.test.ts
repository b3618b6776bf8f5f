import assert from "node:assert/strict";
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { Journal } from "./journal.ts";
import { JournalError, type JournalErrorCode } from "./journal-error.ts";
import { JournalKey } from "./journal-key.ts";
import type { PodState } from "./pod-state.ts";
import { encodeRecord, RECORD_KIND } from "./record-frame.ts";

const signal = new AbortController().signal;
const KEY = aKey(1);
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "forage-journal-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test("a new journal is empty and belongs to no cluster", async () => {
  const journal = await open();
  assert.equal(journal.desired().size, 0);
  assert.equal(journal.clusterId, "");
  assert.equal(journal.revision, 0n);
  assert.deepEqual(journal.problems, []);
});

test("a snapshot and later deltas survive a restart", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 3n, pods: [aPod("a"), aPod("b")] });
  await journal.apply({ revision: 5n, upserts: [aPod("b", "two"), aPod("c")], removals: ["a"] });
  for (const seen of [journal, await open()]) {
    assert.deepEqual([...seen.desired().keys()].sort(), ["b", "c"]);
    assert.equal(seen.desired().get("b")?.specHash, "two");
    assert.equal(seen.desired().get("b")?.labels.app, "b");
    assert.equal(seen.revision, 5n);
    assert.equal(seen.resumeRevision, 5n);
    assert.equal(seen.clusterId, "c");
  }
});

test("a snapshot removes the pods that it does not contain, and their files", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a"), aPod("b")] });
  await journal.replace({ clusterId: "c", revision: 2n, pods: [aPod("b")] });
  assert.deepEqual([...(await open()).desired().keys()], ["b"]);
  assert.equal((await podFiles()).length, 1);
});

test("does not write unchanged pods again", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a")] });
  const before = await podFiles();
  await journal.replace({ clusterId: "c", revision: 2n, pods: [aPod("a")] });
  assert.deepEqual(await podFiles(), before);
  await journal.replace({ clusterId: "c", revision: 3n, pods: [aPod("a", "two")] });
  assert.notDeepEqual(await podFiles(), before);
});

test("applies concurrent changes in order", async () => {
  const journal = await open();
  const changes = [journal.replace({ clusterId: "c", revision: 1n, pods: [] })];
  for (let at = 2n; at <= 20n; at++) {
    changes.push(journal.apply({ revision: at, upserts: [aPod("a", String(at))], removals: [] }));
  }
  await Promise.all(changes);
  assert.equal((await open()).desired().get("a")?.specHash, "20");
});

test("rejects a snapshot of another cluster and changes nothing", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a")] });
  await assert.rejects(
    journal.replace({ clusterId: "d", revision: 9n, pods: [] }),
    failsWith("OTHER_CLUSTER"),
  );
  await assert.rejects(
    journal.replace({ clusterId: "", revision: 9n, pods: [] }),
    failsWith("INVALID_RECORD"),
  );
  assert.deepEqual([...(await open()).desired().keys()], ["a"]);
});

test("rejects a lower revision unless the epoch has increased", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 7n, pods: [aPod("a")] });
  const back = failsWith("REVISION_WENT_BACK");
  await assert.rejects(journal.replace({ clusterId: "c", revision: 6n, pods: [] }), back);
  await assert.rejects(journal.apply({ revision: 7n, upserts: [], removals: ["a"] }), back);
  assert.equal(journal.desired().size, 1);
  await journal.replace({ clusterId: "c", revision: 7n, pods: [aPod("a"), aPod("b")] });
  await journal.replace({ clusterId: "c", epoch: 1n, revision: 2n, pods: [] });
  const again = await open();
  assert.equal(again.revision, 2n);
  await assert.rejects(again.replace({ clusterId: "c", epoch: 0n, revision: 9n, pods: [] }), back);
});

test("rejects changes with uids that can't be file names, duplicates or oversized pods as a whole", async () => {
  const journal = await open();
  const bad = failsWith("INVALID_RECORD");
  for (const uid of ["", "../a", ".a", "a/b", "a\0", "x".repeat(201)]) {
    await assert.rejects(
      journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("ok"), aPod(uid)] }),
      bad,
    );
    await assert.rejects(journal.saveState(uid, aState()), bad);
  }
  await assert.rejects(journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a"), aPod("a")] }), bad);
  const giant = aPod("a", "x".repeat(5 * 1024 * 1024));
  await assert.rejects(journal.replace({ clusterId: "c", revision: 1n, pods: [giant] }), bad);
  assert.equal(journal.desired().size, 0);
  assert.equal(journal.revision, 0n);
});

test("sets a corrupt pod file aside, reports it and reads the others", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 4n, pods: [aPod("a"), aPod("b"), aPod("gone")] });
  const flipped = join(dir, "pods", fileOf(await podFiles(), "a"));
  const bytes = await readFile(flipped);
  bytes[bytes.length - 3] = (bytes[bytes.length - 3] ?? 0) ^ 1;
  await writeFile(flipped, bytes);
  await rm(join(dir, "pods", fileOf(await podFiles(), "gone")));

  const again = await open();
  assert.deepEqual([...again.desired().keys()], ["b"]);
  assert.deepEqual([...again.damaged].sort(), ["a", "gone"]);
  const problem = again.problems.find(({ uid }) => uid === "a");
  assert.deepEqual(problem, {
    type: "pod",
    uid: "a",
    path: `${flipped}.corrupt`,
    reason: "checksum differs",
  });
  assert.deepEqual(await readFile(`${flipped}.corrupt`), bytes);
  assert.equal(again.resumeRevision, 0n, "the coordinator is to send all");
  await assert.rejects(
    again.replace({ clusterId: "c", revision: 3n, pods: [] }),
    failsWith("REVISION_WENT_BACK"),
    "what it had seen still counts",
  );

  await again.replace({ clusterId: "c", revision: 4n, pods: [aPod("a"), aPod("b")] });
  assert.equal(again.damaged.size, 0);
  assert.equal(again.resumeRevision, 4n);
  assert.deepEqual((await open()).problems, []);
});

for (const [what, spoil] of [
  ["corrupt", (path: string) => writeFile(path, "nonsense, and more of it")],
  ["missing", (path: string) => rm(path)],
] as const) {
  test(`with its index ${what}, uses the newest record of each pod until the next snapshot`, async () => {
    const journal = await open();
    await journal.replace({ clusterId: "c", revision: 4n, pods: [aPod("a"), aPod("b")] });
    await journal.apply({ revision: 5n, upserts: [aPod("a", "two")], removals: [] });
    await spoil(join(dir, "index"));
    const again = await open();
    assert.equal(again.desired().get("a")?.specHash, "two");
    assert.equal(again.desired().size, 2);
    assert.deepEqual(
      again.problems.map(({ type }) => type),
      ["index"],
    );
    assert.equal(again.resumeRevision, 0n);
    await again.replace({ clusterId: "c", revision: 9n, pods: [aPod("a", "three")] });
    assert.equal((await open()).desired().get("a")?.specHash, "three");
  });
}

test("removes what an interrupted write has left", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a")] });
  await writeFile(join(dir, "pods", "a.9.pod.tmp"), "half");
  await writeFile(join(dir, "pods", "b.9.pod"), "never listed");
  await writeFile(join(dir, "index.tmp"), "half");
  const again = await open();
  assert.deepEqual(again.problems, []);
  assert.deepEqual(await podFiles(), ["a.1.pod"]);
  assert.deepEqual((await readdir(dir)).sort(), ["index", "pods", "states"]);
});

test("a failed write rejects and changes nothing", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a")] });
  await rm(join(dir, "pods"), { recursive: true });
  await assert.rejects(
    journal.apply({ revision: 2n, upserts: [aPod("b")], removals: [] }),
    failsWith("WRITE_FAILED"),
  );
  assert.equal(journal.revision, 1n);
  assert.deepEqual([...journal.desired().keys()], ["a"]);
  await mkdir(join(dir, "pods"));
  await journal.apply({ revision: 2n, upserts: [aPod("b")], removals: [] });
  assert.equal(journal.revision, 2n);
});

test("never overwrites the files of a failed change", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [] });
  await rm(join(dir, "index"));
  await mkdir(join(dir, "index"));
  await assert.rejects(
    journal.apply({ revision: 2n, upserts: [aPod("a", "lost")], removals: [] }),
    failsWith("WRITE_FAILED"),
  );
  const [written = ""] = await podFiles();
  const before = await readFile(join(dir, "pods", written));
  await rm(join(dir, "index"), { recursive: true });

  await journal.apply({ revision: 2n, upserts: [aPod("a", "kept")], removals: [] });

  assert.deepEqual(await readFile(join(dir, "pods", written)), before);
  assert.equal((await open()).desired().get("a")?.specHash, "kept");
});

test("states are visible at once, and survive a restart", async () => {
  const journal = await open();
  const saved = [1, 2, 3].map((attempt) => journal.saveState("a", aState(attempt)));
  assert.deepEqual(journal.state("a"), aState(3));
  await Promise.all(saved);
  await journal.saveState("b", { hostPorts: [], containers: {} });
  const again = await open();
  assert.deepEqual(again.state("a"), aState(3));
  assert.deepEqual([...again.states().keys()].sort(), ["a", "b"]);
});

test("remove deletes a pod's state and assignment", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a"), aPod("b")] });
  await journal.saveState("a", aState());
  await journal.remove("a");
  await journal.remove("unknown");
  for (const seen of [journal, await open()]) {
    assert.deepEqual([...seen.desired().keys()], ["b"]);
    assert.equal(seen.state("a"), undefined);
    assert.equal(seen.revision, 1n);
  }
});

test("sets a corrupt state aside and keeps its pod", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a")] });
  await journal.saveState("a", aState());
  await writeFile(join(dir, "states", "a.state"), "{}");
  const again = await open();
  assert.equal(again.desired().size, 1);
  assert.equal(again.state("a"), undefined);
  assert.deepEqual(
    again.problems.map(({ type, uid }) => [type, uid]),
    [["state", "a"]],
  );
  assert.deepEqual(await readdir(join(dir, "states")), ["a.state.corrupt"]);
  assert.equal(again.resumeRevision, 1n);
  await again.remove("a");
  assert.deepEqual(await readdir(join(dir, "states")), [], "nothing is left once the pod is removed");
});

test("nothing about a pod is readable on disk without the key", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a", "a-plain-text-to-look-for")] });
  for (const name of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!name.isFile()) continue;
    const bytes = await readFile(join(name.parentPath, name.name));
    assert.equal(bytes.includes("a-plain-text-to-look-for"), false, name.name);
  }
  assert.equal((await open()).desired().get("a")?.specHash, "a-plain-text-to-look-for");
});

test("without its key, a record stays unchanged and damaged until the key returns or the coordinator sends the pod", async () => {
  await (await open()).replace({ clusterId: "c", revision: 4n, pods: [aPod("a"), aPod("b")] });
  const before = await podFiles();
  const other = await open(aKey(2));
  assert.equal(other.desired().size, 0);
  assert.deepEqual([...other.damaged].sort(), ["a", "b"]);
  assert.equal(other.resumeRevision, 0n, "the coordinator is to send all");
  assert.match(
    other.problems[0]?.reason ?? "",
    /encrypted with key [0-9a-f]{16}, and this is key [0-9a-f]{16} \(key 2\)/,
  );
  assert.deepEqual(await podFiles(), before);

  const back = await open();
  assert.deepEqual([back.desired().size, back.damaged.size], [2, 0]);

  const reopened = await open(aKey(2));
  await reopened.replace({ clusterId: "c", revision: 5n, pods: [aPod("a")] });
  assert.deepEqual([reopened.damaged.size, reopened.problems.length], [0, 2]);
  const again = await open(aKey(2));
  assert.deepEqual([...again.desired().keys()], ["a"]);
  assert.deepEqual(again.problems, []);
});

test("rejects a pod's record in another pod's place", async () => {
  await (await open()).replace({ clusterId: "c", revision: 1n, pods: [aPod("a"), aPod("b")] });
  await copyFile(join(dir, "pods", "a.1.pod"), join(dir, "pods", "b.1.pod"));
  const again = await open();
  assert.deepEqual([...again.desired().keys()], ["a"]);
  assert.match(again.problems[0]?.reason ?? "", /for another pod/);
});

test("reads unencrypted records of earlier versions, and encrypts them", async () => {
  await (await open()).replace({ clusterId: "c", revision: 3n, pods: [aPod("a"), aPod("b")] });
  const plain = PodAssignment.encode(aPod("a", "a-plain-text")).finish();
  await writeFile(join(dir, "pods", "a.1.pod"), encodeRecord(RECORD_KIND.pod, plain));
  const journal = await open();
  assert.equal(journal.desired().get("a")?.specHash, "a-plain-text");
  assert.deepEqual(await podFiles(), ["a.2.pod", "b.1.pod"]);
  assert.equal((await readFile(join(dir, "pods", "a.2.pod"))).includes("a-plain-text"), false);
  const again = await open();
  assert.deepEqual([again.desired().size, again.revision, again.problems.length], [2, 3n, 0]);
});

test("the files are readable for the owner only", async () => {
  const journal = await open();
  await journal.replace({ clusterId: "c", revision: 1n, pods: [aPod("a")] });
  await journal.saveState("a", aState());
  const modes = new Set<string>();
  for (const name of await readdir(dir, { recursive: true })) {
    const found = await stat(join(dir, name));
    modes.add(`${found.isDirectory() ? "dir" : "file"} ${(found.mode & 0o777).toString(8)}`);
  }
  assert.deepEqual([...modes].sort(), ["dir 700", "file 600"]);
});

test("a path that can't be a directory fails with OPEN_FAILED", async () => {
  await writeFile(join(dir, "file"), "");
  await chmod(dir, 0o700);
  await assert.rejects(
    Journal.open({ dir: join(dir, "file", "x"), key: KEY, signal }),
    failsWith("OPEN_FAILED"),
  );
});

test("closing writes all changes, and later changes are rejected", async () => {
  const journal = await open();
  const pending = journal.replace({ clusterId: "c", revision: 1n, pods: [] });
  await pending;
  void journal.saveState("a", aState());
  await journal.close();
  assert.deepEqual((await open()).state("a"), aState());
  await assert.rejects(journal.saveState("a", aState()), failsWith("CLOSED"));
  await assert.rejects(journal.apply({ revision: 2n, upserts: [], removals: [] }), failsWith("CLOSED"));
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

function aState(attempt = 1): PodState {
  return {
    sandbox: { namespacePath: "/run/netns/x", address: "10.0.0.2" },
    hostPorts: [{ container: "web", containerPort: 80, protocol: "TCP", hostPort: 20_000 }],
    containers: {
      web: {
        attempt,
        restartCount: attempt - 1,
        retryAtMs: 5_000,
        backoffMs: 10_000,
        lastTermination: {
          exitCode: 137,
          signal: 9,
          reason: "Error",
          message: "last\nlines",
          finishedAtMs: 1_000,
        },
      },
    },
    startedAtMs: 500,
  };
}

async function podFiles(): Promise<string[]> {
  return (await readdir(join(dir, "pods"))).filter((name) => name.endsWith(".pod")).sort();
}

function fileOf(names: readonly string[], uid: string): string {
  const found = names.find((name) => name.startsWith(`${uid}.`));
  assert.ok(found);
  return found;
}

function failsWith(code: JournalErrorCode): (error: unknown) => boolean {
  return (error) =>
    error instanceof JournalError && error.code === code && error.retryable === (code === "WRITE_FAILED");
}
