import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspacePhase, WorkspaceStatus } from "@forage/proto/core";
import { workspaceRow } from "./workspace-row.ts";

type Fields = Parameters<typeof WorkspaceStatus.fromPartial>[0];
const rowOf = (fields: Fields) =>
  workspaceRow(WorkspaceStatus.fromPartial({ id: "i-1", ...fields }), "workspaces");

test("returns the owner, node, pod and URL of a running workspace without its owner token", () => {
  const row = rowOf({
    phase: WorkspacePhase.RUNNING,
    metadata: { metaId: "try", owner: "ada", startedAt: new Date(5_000) } as never,
    spec: { url: "https://try.ws.example" },
    runtime: { nodeName: "n1", podName: "ws-i-1" },
    auth: { ownerToken: "canary" },
  } as Fields);
  const { workspace, owner, phase, tone, url, pod, node, namespace } = row;
  assert.deepEqual(
    [workspace, owner, phase, tone, url, pod, node, namespace],
    ["try", "ada", "Running", "good", "https://try.ws.example", "ws-i-1", "n1", "workspaces"],
  );
  assert.equal(JSON.stringify(row).includes("canary"), false);
});

const phases: readonly (readonly [what: string, fields: Fields, tone: string, message: string])[] = [
  ["creating", { phase: WorkspacePhase.CREATING, message: "on its way" }, "busy", "on its way"],
  ["stopped", { phase: WorkspacePhase.STOPPED }, "off", ""],
  ["interrupted", { phase: WorkspacePhase.INTERRUPTED }, "bad", ""],
  [
    "failed",
    { phase: WorkspacePhase.STOPPED, message: "ended", conditions: { failed: "no image" } } as Fields,
    "bad",
    "no image",
  ],
  [
    "timed out",
    { phase: WorkspacePhase.STOPPING, conditions: { timeout: "idle" } } as Fields,
    "busy",
    "idle",
  ],
];

for (const [what, fields, tone, message] of phases)
  test(`shows a ${what} workspace as ${tone}${message === "" ? "" : " with its message"}`, () => {
    const row = rowOf(fields);
    assert.deepEqual([row.tone, row.message], [tone, message]);
  });

test("returns no link for a URL that browsers can't open", () => {
  for (const url of ["javascript:alert(1)", "data:text/html,x", "ws.example", ""])
    assert.equal(rowOf({ spec: { url } } as Fields).url, "", url);
});
