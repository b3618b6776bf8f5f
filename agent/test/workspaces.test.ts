import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  ContentSource,
  ContentStage,
  TransferKind,
  TransferState,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { systemClock } from "../src/clock.ts";
import { JournalKey } from "../src/journal/journal-key.ts";
import { VolumeError } from "../src/volumes/volumes.ts";
import { runConfined } from "../src/workspaces/confined.ts";
import { openWorkspaces } from "../src/workspaces/open-workspaces.ts";
import { WorkspaceRecords } from "../src/workspaces/workspace-records.ts";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost, whyNoWorkspaces } from "./workspace-host.ts";
import { archiveOf } from "./workspace-store.ts";

const options = { skip: whyNoWorkspaces ?? false, timeout: 60_000 };
const FINAL = { id: "final-1", kind: TransferKind.FINAL_BACKUP, object: "ada/meta-a/a-1.tar.zst" };

async function readyHost(t: Parameters<typeof WorkspaceHost.setUp>[0], order = anOrder("a")) {
  const host = await WorkspaceHost.setUp(t);
  host.store.order(order);
  const workspaces = await host.start();
  await until("the content is ready", () => host.store.reports.get("a")?.stage === ContentStage.READY);
  return { host, workspaces, content: host.layout.content("a") };
}

test("provides the pod's volume only once the content is ready", options, async (t) => {
  const host = await WorkspaceHost.setUp(t);
  const workspaces = await host.start();
  await assert.rejects(workspaces.prepare("a", "pod-a"), (error) => {
    assert.ok(error instanceof VolumeError && error.code === "UNAVAILABLE");
    return true;
  });

  host.store.order(anOrder("a"));
  await until("the pod is started again", () => host.retried.includes("pod-a"));

  assert.equal(await workspaces.prepare("a", "pod-a"), host.layout.content("a"));
  await assert.rejects(workspaces.prepare("a", "pod-other"), /another pod/);
});

test("reports the source of empty content", options, async (t) => {
  const { host } = await readyHost(t);
  assert.equal(host.store.reports.get("a")?.source, ContentSource.EMPTY);
});

test("keeps orders encrypted", options, async (t) => {
  const order = anOrder("a", {
    initializer: { spec: { $case: "git", value: { remoteUri: "https://a:s3cr3t@127.0.0.1:1/x.git" } } },
  });
  const host = await WorkspaceHost.setUp(t);
  host.store.order(order);
  await host.start();
  await until("the order is on disk", () => existsSync(host.layout.order("a")));
  assert.equal(readFileSync(host.layout.order("a")).includes("s3cr3t"), false);
});

test("keeps complete content over a restart and doesn't initialize it again", options, async (t) => {
  const { host, content } = await readyHost(t);
  writeFileSync(join(content, "work"), "mine");

  const workspaces = await host.start();
  await until("the volume is given", () =>
    workspaces.prepare("a", "pod-a").then(
      () => true,
      () => false,
    ),
  );

  assert.equal(readFileSync(join(content, "work"), "utf8"), "mine");
});

test("stores the final backup after the pod has ended, then disposes of the content", options, async (t) => {
  const { host, content } = await readyHost(t);
  await mkdir(join(content, "src"));
  writeFileSync(join(content, "src", "main.ts"), "export {};");
  host.activePods.add("pod-a");
  host.store.change("a", { transfers: [FINAL] });
  await until("the order is known", () => host.store.reports.get("a")?.orderVersion === 2n);
  assert.equal(host.store.uploads.length, 0);

  host.activePods.delete("pod-a");
  await until(
    "the backup is stored",
    () => host.store.transfer("a", "final-1")?.state === TransferState.DONE,
  );
  const bytes = host.store.archives.get(FINAL.object) ?? assert.fail();
  assert.deepEqual(host.store.transfer("a", "final-1")?.archive, archiveOf(FINAL.object, bytes));
  assert.ok(existsSync(content));

  host.store.change("a", { dispose: true });
  await until("it is disposed of", () => host.store.reports.get("a")?.stage === ContentStage.DISPOSED);
  assert.deepEqual(
    readdirSync(host.layout.root).filter((name) => !name.startsWith(".")),
    [],
  );
});

test("restores a backup before any initializer", options, async (t) => {
  const { host, content } = await readyHost(t);
  writeFileSync(join(content, "work"), "mine");
  host.store.change("a", { transfers: [FINAL] });
  await until(
    "the backup is stored",
    () => host.store.transfer("a", "final-1")?.state === TransferState.DONE,
  );

  const restore = host.store.transfer("a", "final-1")?.archive;
  host.store.order(anOrder("b", { restore }));
  await until("the content is ready", () => host.store.reports.get("b")?.stage === ContentStage.READY);

  assert.equal(host.store.reports.get("b")?.source, ContentSource.BACKUP);
  assert.equal(readFileSync(join(host.layout.content("b"), "work"), "utf8"), "mine");
});

test("responds to an order to dispose of an unknown workspace", options, async (t) => {
  const host = await WorkspaceHost.setUp(t);
  host.store.order(anOrder("gone", { dispose: true }));
  await host.start();
  await until("it is disposed of", () => host.store.reports.get("gone")?.stage === ContentStage.DISPOSED);
});

test("keeps content without a record that was not disposed of", options, async (t) => {
  const { host, content } = await readyHost(t);
  host.store.remove("a");
  await until("it is noticed", () =>
    host.logged.some(({ event }) => event === "workspace-content-kept-without-record"),
  );
  assert.ok(existsSync(content));
});

test(
  "gets the orders that changed while the stream was down, and reports its work in that time",
  options,
  async (t) => {
    const { host } = await readyHost(t);
    host.store.disconnect();
    host.store.order(anOrder("b"));
    host.store.change("a", { transfers: [FINAL] });
    await until("both are done", () => {
      const isReady = host.store.reports.get("b")?.stage === ContentStage.READY;
      return isReady && host.store.transfer("a", "final-1")?.state === TransferState.DONE;
    });
  },
);

test("keeps the content and its volume, whichever of its records is damaged", options, async (t) => {
  const { host, content } = await readyHost(t);
  writeFileSync(join(content, "work"), "mine");
  await host.stop();
  const { layout } = host;
  const records = new WorkspaceRecords({ layout, key: new JournalKey(host.key, "test"), noteDamage() {} });
  await records.saveSecrets("a", { token: "once" });
  const sound = new Map(
    [layout.order("a"), layout.state("a"), layout.secrets("a")].map((path) => [path, readFileSync(path)]),
  );
  const damages: Record<string, (path: string) => void> = {
    flipped: (path) => {
      const bytes = readFileSync(path);
      const at = Math.floor(bytes.length / 2);
      writeFileSync(path, bytes.fill((bytes[at] ?? 0) ^ 1, at, at + 1));
    },
    emptied: (path) => writeFileSync(path, ""),
    removed: (path) => rmSync(path),
  };
  for (const path of sound.keys()) {
    for (const [how, damage] of Object.entries(damages)) {
      for (const [file, bytes] of sound) writeFileSync(file, bytes);
      damage(path);
      host.store.reports.clear();
      host.damage.length = 0;

      const workspaces = await host.start();
      await until(
        `the content is ready again after ${path} was ${how}`,
        () => host.store.reports.get("a")?.stage === ContentStage.READY,
      );
      const kept = await new WorkspaceRecords({
        ...{ layout, key: new JournalKey(host.key, "test") },
        noteDamage: (damaged) => host.damage.push(damaged),
      }).readSecrets("a");

      // The stored report is sent before the content is opened. The agent tries again in that time.
      await until("the volume is given", () =>
        workspaces.prepare("a", "pod-a").then(
          (path) => path === content,
          () => false,
        ),
      );
      assert.equal(readFileSync(join(content, "work"), "utf8"), "mine");
      assert.deepEqual(host.damage, how === "removed" ? [] : [path], how);
      assert.deepEqual(kept, path === layout.secrets("a") ? {} : { token: "once" });
      await host.stop();
    }
  }
});

test("reports content that was lost with its disk, and doesn't create it again", options, async (t) => {
  const { host, content } = await readyHost(t);
  host.store.change("a", { contentComplete: true });
  await until("the order is known", () => host.store.reports.get("a")?.orderVersion === 2n);
  await host.stop();
  rmSync(host.layout.home("a"), { recursive: true });
  host.store.reports.clear();

  await host.start();
  await until("the loss is reported", () =>
    /no longer on this node/.test(host.store.reports.get("a")?.message ?? ""),
  );

  assert.equal(host.store.reports.get("a")?.stage, ContentStage.INITIALIZING);
  assert.equal(existsSync(content), false);
  host.store.change("a", { dispose: true });
  await until("it is disposed of", () => host.store.reports.get("a")?.stage === ContentStage.DISPOSED);
});

test("an interrupted program rejects with the reason of its signal", options, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "forage-workspaces-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const stop = new AbortController();
  const command = { file: "sleep", args: ["600"], directory };
  const running = runConfined(command, { timeoutMs: 600_000, signal: stop.signal });
  stop.abort(new Error("no longer needed"));
  await assert.rejects(running, /no longer needed/);
});

test("refuses to start on a host without the required programs", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "forage-workspaces-"));
  const opening = openWorkspaces({
    ...{ dataDir, coordinators: { current: { host: "127.0.0.1", port: 1 } } },
    identity: { load: async () => undefined },
    ...{ key: new JournalKey(randomBytes(32), "test"), noteDamage: () => undefined },
    ...{ clock: systemClock, random: () => 0, log: { info: () => undefined, warn: () => undefined } },
    findProgram: async (name) => name !== "zstd" && name !== "git",
  });
  await assert.rejects(opening, /this host has no zstd, git/);
  rmSync(dataDir, { recursive: true });
});
