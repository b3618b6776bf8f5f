import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { encodeHeader, paddingFor, TAR_END, type TarHeader } from "@forage/archive";
import {
  type Archive,
  ContentStage,
  TransferKind,
  TransferState,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { run } from "../../hack/lib/run.ts";
import { ChildRunner } from "../src/volumes/run-child.ts";
import { WorkspaceVolumes } from "../src/workspaces/workspace-volume.ts";
import { enterOwnMounts, loopDevices, whyNoOwnMounts } from "./own-mounts.ts";
import { digestTree, growTree } from "./random-tree.ts";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost } from "./workspace-host.ts";
import { archiveOf } from "./workspace-store.ts";

const obstacle = whyNoOwnMounts();
if (obstacle === undefined) enterOwnMounts();
const options = { skip: obstacle ?? false, timeout: 120_000 };
const FINAL = { id: "final", kind: TransferKind.FINAL_BACKUP, object: "ada/meta/final.tar.zst" };
const MIB = 1024 * 1024;

async function ready(host: WorkspaceHost, id: string): Promise<string> {
  await until(`the content of ${id} is ready`, () => {
    const { stage, message } = host.store.reports.get(id) ?? {};
    assert.notEqual(stage, ContentStage.FAILED, message);
    return stage === ContentStage.READY;
  });
  return host.layout.content(id);
}

async function failed(host: WorkspaceHost, id: string): Promise<string> {
  await until(`the content of ${id} fails`, () => host.store.reports.get(id)?.stage === ContentStage.FAILED);
  return host.store.reports.get(id)?.message ?? "";
}

/** Sets up a host with one workspace that is ready. */
async function withContent(t: TestContext): Promise<{ host: WorkspaceHost; content: string }> {
  const host = await WorkspaceHost.setUp(t);
  host.store.order(anOrder("a"));
  await host.start();
  return { host, content: await ready(host, "a") };
}

async function backUp(host: WorkspaceHost): Promise<Archive> {
  host.store.change("a", { transfers: [FINAL] });
  await until("the backup is stored", () => host.store.transfer("a", "final")?.state === TransferState.DONE);
  return host.store.transfer("a", "final")?.archive ?? assert.fail();
}

async function restored(host: WorkspaceHost, restore: Archive): Promise<string> {
  host.store.order(anOrder("b", { restore }));
  return await ready(host, "b");
}

for (const seed of [1, 2, 3, 4]) {
  test(`restores every kind of file unchanged, tree ${seed}`, options, async (t) => {
    const { host, content } = await withContent(t);
    growTree(content, seed, 120);
    const before = await digestTree(content);

    const restore = await backUp(host);
    const copy = await restored(host, restore);

    assert.equal(await digestTree(copy), before);
    assert.equal(await digestTree(content), before);
    assert.ok(restore.sizeBytes < 2n * BigInt(MIB), "holes are not stored");
  });
}

test("keeps holes as holes", options, async (t) => {
  const { host, content } = await withContent(t);
  writeFileSync(join(content, "disk.img"), "begin");
  truncateSync(join(content, "disk.img"), 2 ** 33);
  const copy = join(await restored(host, await backUp(host)), "disk.img");
  const { size, blocks } = statSync(copy);
  assert.equal(size, 2 ** 33);
  assert.ok(blocks * 512 < MIB);
});

test("continues a broken download where it stopped", options, async (t) => {
  const { host, content } = await withContent(t);
  writeFileSync(join(content, "data"), randomBytes(3 * MIB));
  const before = await digestTree(content);
  const restore = await backUp(host);
  host.store.downloadFaults.push(MIB, MIB, 2 * MIB);
  assert.equal(await digestTree(await restored(host, restore)), before);
});

test("uploads the same archive again after the store was unavailable", options, async (t) => {
  const { host, content } = await withContent(t);
  writeFileSync(join(content, "data"), randomBytes(3 * MIB));
  host.store.uploadFaults.push(
    () => true,
    (received) => received > MIB,
    (received) => received > 2 * MIB,
  );
  const restore = await backUp(host);
  assert.equal(host.store.transfer("a", "final")?.tries, 4);
  assert.ok(host.store.history.some(({ transfers }) => transfers[0]?.message.includes("the store is away")));
  assert.equal(await digestTree(await restored(host, restore)), await digestTree(content));
});

test("sends an archive only once if the store already has it", options, async (t) => {
  const { host } = await withContent(t);
  const archive = await backUp(host);
  // The record of the transfer and the archive's file are lost.
  await host.stop();
  rmSync(host.layout.state("a"));
  await host.start();
  await until("it is stored again", () => host.store.uploads.length === 2);
  await until("it is done", () => host.store.transfer("a", "final")?.state === TransferState.DONE);
  assert.equal(host.store.transfer("a", "final")?.archive?.sha256, archive.sha256);
});

test("doesn't start with a backup that differs from its digest", options, async (t) => {
  const { host, content } = await withContent(t);
  writeFileSync(join(content, "data"), "x".repeat(10_000));
  const restore = await backUp(host);
  const bytes = Buffer.from(host.store.archives.get(restore.object) ?? assert.fail());
  bytes[bytes.byteLength - 20] = (bytes.at(-20) ?? 0) ^ 0xff;
  host.store.archives.set(restore.object, bytes);

  host.store.order(anOrder("b", { restore }));
  const message = await failed(host, "b");

  assert.match(message, /archive ada\/meta\/final.tar.zst is damaged|could not be unpacked/);
  assert.ok(!existsSync(host.layout.content("b")));
});

test("doesn't start with a truncated backup", options, async (t) => {
  const { host, content } = await withContent(t);
  writeFileSync(join(content, "data"), "x".repeat(10_000));
  const restore = await backUp(host);
  const bytes = host.store.archives.get(restore.object) ?? assert.fail();
  host.store.archives.set(restore.object, bytes.subarray(0, bytes.byteLength - 30));

  host.store.order(anOrder("b", { restore }));
  assert.match(await failed(host, "b"), /is damaged|could not be unpacked/);
  assert.ok(!existsSync(host.layout.content("b")));
});

test(
  "waits for a backup that is temporarily unavailable, and never starts without it",
  options,
  async (t) => {
    const { host } = await withContent(t);
    const restore = await backUp(host);
    const bytes = host.store.archives.get(restore.object) ?? assert.fail();
    host.store.archives.delete(restore.object);
    host.store.order(anOrder("b", { restore }));
    await until("the reason is reported", () => /no object/.test(host.store.reports.get("b")?.message ?? ""));
    assert.equal(host.store.reports.get("b")?.stage, ContentStage.INITIALIZING);
    host.store.archives.set(restore.object, bytes);
    await ready(host, "b");
  },
);

test("writes nothing outside the content, whatever paths the archive names", options, async (t) => {
  const { host } = await withContent(t);
  const outside = join(host.layout.root, "..", "outside");
  mkdirSync(outside);
  const archives = [
    [entry("../../../../outside/parent", "file"), entry(`${outside}/absolute`, "file")],
    [entry("out", "link", outside), entry("out/through-link", "file")],
    [entry("a", "link", "../../../../outside"), entry("b", "link", "a"), entry("b/through-links", "file")],
  ];
  for (const [index, entries] of archives.entries()) {
    const bytes = zstdCompressSync(Buffer.concat([...entries, TAR_END]));
    const object = `crafted-${index}`;
    host.store.archives.set(object, bytes);
    const id = `crafted-${index}`;
    host.store.order(anOrder(id, { restore: archiveOf(object, bytes) }));
    await until("it ends", () => {
      const { stage, message } = host.store.reports.get(id) ?? {};
      return stage === ContentStage.READY || stage === ContentStage.FAILED || /unpacked/.test(message ?? "");
    });
  }
  assert.equal(spawnSync("ls", ["-A", outside]).stdout.toString(), "");
});

test("stores an archive for which the node's disk has no room", options, async (t) => {
  const host = await WorkspaceHost.setUp(t, { diskMebibytes: 24 });
  host.store.order(anOrder("a"));
  await host.start();
  const content = await ready(host, "a");
  writeFileSync(join(content, "data"), randomBytes(16 * MIB));
  const before = readFileSync(join(content, "data"));

  const restore = await backUp(host);

  // The backup can be restored once there is room.
  host.store.order(anOrder("b", { restore }));
  await until("the reason is reported", () =>
    host.store.history.some(({ message }) => /no space is left/.test(message)),
  );
  host.store.change("a", { dispose: true });
  assert.ok(readFileSync(join(await ready(host, "b"), "data")).equals(before));
});

test("saves and deletes content that has filled the node's disk to the last byte", options, async (t) => {
  const host = await WorkspaceHost.setUp(t, { diskMebibytes: 16 });
  host.store.order(anOrder("a"));
  await host.start();
  const content = await ready(host, "a");
  assert.throws(
    () => {
      for (;;) appendFileSync(join(content, "data"), randomBytes(64 * 1024));
    },
    { code: "ENOSPC" },
  );
  const before = readFileSync(join(content, "data"));

  const restore = await backUp(host);
  host.store.change("a", { dispose: true });
  host.store.order(anOrder("b", { restore }));

  assert.ok(readFileSync(join(await ready(host, "b"), "data")).equals(before));
  assert.ok(host.logged.some(({ event }) => event === "workspace-order-not-on-disk"));
});

function entry(path: string, type: "file" | "link", target = ""): Buffer {
  const content = Buffer.from(type === "file" ? "escaped" : "");
  const header: TarHeader = { path, type, mode: 0o777, modifiedMs: 0, sizeBytes: content.byteLength, target };
  return Buffer.concat([encodeHeader(header), content, paddingFor(content.byteLength)]);
}

test(
  "enforces a quota, keeps the content over a restart of the host, and frees the device",
  options,
  async (t) => {
    const host = await WorkspaceHost.setUp(t);
    host.store.order(anOrder("a", { quotaBytes: BigInt(16 * MIB) }));
    await host.start();
    const content = await ready(host, "a");
    writeFileSync(join(content, "kept"), "data");
    assert.throws(() => writeFileSync(join(content, "large"), randomBytes(20 * MIB)), /ENOSPC/);
    const children = new ChildRunner();
    const volumes = new WorkspaceVolumes({ layout: host.layout, children, warn: () => undefined });
    const used = await volumes.usedBytes("a", new AbortController().signal);
    assert.ok(used > 15 * MIB && used < 20 * MIB, `${used} bytes`);

    await host.stop();
    await run("umount", [host.layout.volume("a")]);
    writeFileSync(host.layout.state("a"), "damaged");
    host.store.change("a", { contentComplete: true });
    host.store.history.length = 0;
    const workspaces = await host.start();
    await until("the volume is given", () =>
      workspaces.prepare("a", "pod-a").then(
        () => true,
        () => false,
      ),
    );
    assert.equal(readFileSync(join(content, "kept"), "utf8"), "data");
    // The coordinator would count it as lost, and order the deletion.
    assert.ok(host.store.history.every(({ stage }) => stage !== ContentStage.INITIALIZING));

    host.store.change("a", { dispose: true });
    await until("it is gone", () => host.store.reports.get("a")?.stage === ContentStage.DISPOSED);
    assert.deepEqual(
      loopDevices().filter(({ file }) => file.startsWith(host.layout.root)),
      [],
    );
  },
);

test(
  "restores a backup into the larger file system of an instance with a larger quota",
  options,
  async (t) => {
    const host = await WorkspaceHost.setUp(t);
    host.store.order(anOrder("a", { quotaBytes: BigInt(4 * MIB) }));
    await host.start();
    const data = randomBytes(3 * MIB);
    writeFileSync(join(await ready(host, "a"), "data"), data);
    const restore = await backUp(host);
    host.store.order(anOrder("b", { restore, quotaBytes: BigInt(16 * MIB) }));
    const content = await ready(host, "b");
    writeFileSync(join(content, "more"), randomBytes(12 * MIB));
    assert.ok(readFileSync(join(content, "data")).equals(data));
    for (const id of ["a", "b"]) host.store.change(id, { dispose: true });
    await until("both are gone", () =>
      ["a", "b"].every((id) => host.store.reports.get(id)?.stage === ContentStage.DISPOSED),
    );
  },
);

test(
  "reports content as disposed of before its files are deleted, and deletes them later",
  options,
  async (t) => {
    const host = await WorkspaceHost.setUp(t);
    for (const id of ["a", "b"]) host.store.order(anOrder(id));
    await host.start();
    const contents = await Promise.all(["a", "b"].map((id) => ready(host, id)));
    // A disposal ends the measurement after the start.
    await until("the use of a is measured", () => (host.store.reports.get("a")?.usedBytes ?? 0n) > 0n);
    const stuck = join(host.layout.discardedOf("a"), "stuck");
    mkdirSync(stuck, { recursive: true });
    await run("mount", ["-t", "tmpfs", "tmpfs", stuck]);
    try {
      for (const id of ["a", "b"]) host.store.change(id, { dispose: true });
      await until("both are disposed of", () =>
        ["a", "b"].every((id) => host.store.reports.get(id)?.stage === ContentStage.DISPOSED),
      );
      assert.deepEqual(contents.map(existsSync), [false, false]);
      await until("the files of b are deleted", () => !existsSync(host.layout.discardedOf("b")));
      assert.ok(existsSync(host.layout.discardedOf("a")));
      assert.notEqual(host.store.reports.get("a")?.usedBytes, 0n);
    } finally {
      // Retried because a deletion may have the directory open.
      await run("umount", ["--lazy", stuck]);
    }
    await until("the files of a are deleted", () => host.store.reports.get("a")?.usedBytes === 0n);
    assert.equal(existsSync(host.layout.discardedOf("a")), false);
  },
);
