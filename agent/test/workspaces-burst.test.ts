import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost, whyNoWorkspaces } from "./workspace-host.ts";

const options = { skip: whyNoWorkspaces ?? false, timeout: 180_000 };
const WORKSPACES = Number(process.env.FORAGE_WORKSPACE_BURST ?? 24);
/** 200 workspaces take two minutes on a busy machine. */
const LIMIT_MS = 150_000;

test(
  "makes, stores and deletes the content of many workspaces that are ordered at one moment",
  options,
  async (t) => {
    const host = await WorkspaceHost.setUp(t);
    await host.start();
    const ids = Array.from({ length: WORKSPACES }, (_, index) => `w${index}`);
    const all = (what: string, holds: (id: string) => boolean) =>
      until(what, () => ids.every(holds), LIMIT_MS);
    const stageOf = (id: string) => host.store.reports.get(id)?.stage;
    for (const id of ids) host.store.order(anOrder(id));
    await all("all are ready", (id) => stageOf(id) === ContentStage.READY);
    for (const id of ids) writeFileSync(join(host.layout.content(id), "own"), id);

    const object = (id: string): string => `ada/${id}/final.tar.zst`;
    for (const id of ids)
      host.store.change(id, {
        transfers: [{ id: "final", kind: TransferKind.FINAL_BACKUP, object: object(id) }],
      });
    await all("all are stored", (id) => host.store.transfer(id, "final")?.state === TransferState.DONE);
    assert.deepEqual([...host.store.archives.keys()].sort(), ids.map(object).sort());
    assert.equal(host.store.uploads.length, WORKSPACES, "each was stored once");

    for (const id of ids) host.store.change(id, { dispose: true });
    await all("all are deleted", (id) => stageOf(id) === ContentStage.DISPOSED);
    assert.deepEqual(
      readdirSync(host.layout.root).filter((name) => !name.startsWith(".")),
      [],
    );
  },
);
