import assert from "node:assert/strict";
import { test } from "node:test";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { workspaceLines } from "./support-lines.ts";

test("leaves out the output of a workspace's container, and keeps its exit code", () => {
  const failed = "container workspace ran with an error: exit code 1 (Error): canary\nof two lines";
  const headlessTaskFailed = "exit code 137: canary";
  const conditions = { failed, headlessTaskFailed };
  const [line] = linesOf([{ id: "a", message: failed, conditions }]);
  assert.doesNotMatch(JSON.stringify(line), /canary/);
  assert.match(
    JSON.stringify(line),
    /"failed":"container workspace ran with an error: exit code 1 \(Error\): \[left out\]"/,
  );
});

test("shows only fields that are known to contain no secrets", () => {
  const canary = "canary";
  const [line] = linesOf([
    {
      ...{ id: "a", podName: "ws-a", sshPublicKeys: [canary], servicePrefix: canary, requestHash: canary },
      metadata: { owner: "owner-1", metaId: "meta-1", annotations: { [canary]: canary } },
      spec: { workspaceImage: "image:1", url: `https://${canary}.example` },
      repo: { branch: canary, uncommitedFiles: [canary] },
      transfers: [{ id: "1", object: canary, url: canary, message: "the disk is full", tries: 2 }],
      archives: { [canary]: { object: canary } },
    },
  ]);
  assert.doesNotMatch(JSON.stringify(line), /canary/);
  assert.partialDeepStrictEqual(line, {
    ...{ id: "a", podName: "ws-a", sshPublicKeys: 1 },
    metadata: { owner: "owner-1", metaId: "meta-1" },
    spec: { workspaceImage: "image:1" },
    transfers: [{ id: "1", message: "the disk is full", tries: 2 }],
  });
});

test("shows the newest instances if there are very many", () => {
  const lines = linesOf(
    Array.from({ length: 2_001 }, (_, at) => ({
      id: `i${at}`,
      createdAt: { seconds: BigInt(at), nanos: 0 },
    })),
  );
  assert.equal(lines.length, 2_000);
  assert.partialDeepStrictEqual([lines[0], lines.at(-1)], [{ id: "i2000" }, { id: "i1" }]);
});

type Part = Parameters<typeof InstanceRecord.fromPartial>[0];

function linesOf(records: readonly Part[]): readonly object[] {
  const instances = records.map((it, revision) => ({
    ...{ key: `k${revision}`, revision, record: InstanceRecord.fromPartial(it) },
  }));
  return workspaceLines({
    instance: () => undefined,
    instances: () => instances,
    secrets: () => undefined,
    activity: () => undefined,
  });
}
