import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { rootFileSystem } from "../lib/busybox-image.ts";
import { packOciArchive } from "../lib/oci-archive.ts";
import { packTar, type TarEntry } from "../lib/tar.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { webManifest } from "../system/manifests.ts";
import { getPods, waitForReadyPods } from "../system/pods.ts";
import { type System, startSystem } from "../system/system.ts";

const LIMIT = { timeout: 180_000 };
const NAME = "registry.invalid/shop/web:1";
const FULL = ["--node", "n1", "-n", "e2e", "-o", "json"];

describe("images without a registry", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;

  before(async () => {
    host = await startTestHost();
    system = await startSystem(host);
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  async function archive(file: string, files: readonly TarEntry[], reference = NAME): Promise<string> {
    const layer = packTar([...(await rootFileSystem({})), ...files]);
    const path = join(host.dir, file);
    writeFileSync(path, packOciArchive({ reference, layer, entrypoint: [], cmd: [], env: ["PATH=/bin"] }));
    return path;
  }

  test(
    "a pod that waits for an image starts once the image is pushed; a second push sends nothing",
    LIMIT,
    async () => {
      const manifest = webManifest({ image: NAME, replicas: 1 });
      const applied = await system.forageInProcess(["apply", "-f", "-", "--detach"], manifest);
      assert.equal(applied.exitCode, 0, applied.stderr);
      await waitFor(async () => (await getPods(system)).length === 1, {
        what: "there is a pod",
        limitMs: 60_000,
      });
      // Larger than the buffers in between.
      const path = await archive("web.tar", [
        { type: "file", path: "random", content: randomBytes(8 << 20) },
      ]);
      const [first] = await system.ask<Pushed[]>(["image", "push", path, ...FULL]);
      assert.ok(first !== undefined && first.sentBytes > 8 << 20 && first.sentBytes === first.sizeBytes);
      await waitForReadyPods(system, 1);
      const [again] = await system.ask<Pushed[]>(["image", "push", path, ...FULL]);
      assert.deepEqual([again?.sentBytes, again?.sizeBytes], [0, first.sizeBytes]);
      await waitFor(async () => (await listed()).includes(NAME), {
        what: "the node reports it",
        limitMs: 60_000,
      });
    },
  );

  test("a damaged layer is refused, and the image of that name remains unchanged", LIMIT, async () => {
    const path = await archive("damaged.tar", [{ type: "file", path: "x", content: randomBytes(1 << 20) }]);
    const bytes = readFileSync(path);
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1);
    writeFileSync(path, bytes);
    const { exitCode, stderr } = await system.forageInProcess(["image", "push", path, ...FULL]);
    assert.equal(exitCode, 1);
    assert.match(stderr, /layer sha256:[0-9a-f]{64} is damaged/);
    assert.equal((await getPods(system)).filter(({ status }) => status?.ready).length, 1);
    const images = async () => (await host.nerdctl(["images", "--names"])).stdout;
    assert.doesNotMatch(await images(), /incoming/);
  });

  test("one archive with images and manifests sets up a site", LIMIT, async () => {
    const name = "registry.invalid/shop/site:1";
    const path = await archive("site-image.tar", [], name);
    const manifest = webManifest({ name: "site", image: name, replicas: 1 });
    const bundle = join(host.dir, "site.tar.zst");
    const create = ["bundle", "create", bundle, "-f", "-", "--archive", path];
    const created = await system.forageInProcess(create, manifest);
    assert.equal(created.exitCode, 0, created.stderr);
    const load = ["bundle", "load", bundle, "--node", "n1", "--apply"];
    const loaded = await system.forageInProcess(load);
    assert.deepEqual([loaded.exitCode, /^rollout .* done/.test(loaded.stdout)], [0, true], loaded.stderr);
  });

  test("an image in use is not removed, but an unused one is", LIMIT, async () => {
    const used = await system.forageInProcess(["image", "rm", NAME, "--node", "n1", "-n", "e2e"]);
    assert.deepEqual([used.exitCode, /used by containers/.test(used.stderr)], [1, true], used.stderr);
    const other = "registry.invalid/other:1";
    const path = await archive("other.tar", [], other);
    await system.ask(["image", "push", path, ...FULL]);
    const foreign = await system.forageInProcess(["image", "rm", other, "--node", "n1", "-n", "shop"]);
    assert.match(foreign.stderr, /for other namespaces too/);
    const removed = await system.forageInProcess(["image", "rm", other, "--node", "n1", "-n", "e2e"]);
    assert.deepEqual([removed.exitCode, removed.stdout], [0, `n1: ${other} removed\n`], removed.stderr);
    const gone = await system.forageInProcess(["image", "rm", other, "--node", "n1", "-n", "e2e"]);
    assert.equal(gone.stdout, `n1: ${other} does not exist\n`);
  });

  test("an image is pulled before pods need it", LIMIT, async () => {
    const registry = await host.startRegistry();
    const { reference } = await registry.pushImage(await archive("ahead.tar", []), "shop/ahead:1");
    const pulled = await system.forageInProcess([
      "image",
      "prefetch",
      reference,
      "--node",
      "n1",
      "-n",
      "e2e",
    ]);
    assert.deepEqual(
      [pulled.exitCode, pulled.stdout],
      [0, `n1: ${reference} is on the node\n`],
      pulled.stderr,
    );
    await waitFor(async () => (await listed()).includes(reference), {
      what: "the node reports it",
      limitMs: 60_000,
    });
    const lacking = await system.forageInProcess(["image", "prefetch", `${reference}x`, "--node", "n1"]);
    assert.deepEqual([lacking.exitCode, lacking.stdout], [1, ""], lacking.stderr);
  });

  async function listed(): Promise<readonly string[]> {
    const rows = await system.ask<{ image: string }[]>(["image", "ls", "--node", "n1"]);
    return rows.map(({ image }) => image);
  }
});

interface Pushed {
  readonly sentBytes: number;
  readonly sizeBytes: number;
}
