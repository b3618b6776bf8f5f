import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { encodeHeader, paddingFor, TAR_END } from "@forage/archive";
import { nameImages } from "../commands/image-push.ts";
import { ArchiveFile } from "./archive-file.ts";
import { digestOf, listImages } from "./archive-images.ts";

const OCI = "application/vnd.oci.image";

test("reads the image for the node's platform from an OCI layout", async (t) => {
  const [amd, arm] = [anImage("amd64"), anImage("arm64")];
  const index = bytesOf({
    manifests: [amd, arm].map(({ manifest, architecture }) => {
      return { ...describe("manifest.v1+json", manifest), platform: { os: "linux", architecture } };
    }),
  });
  const annotations = { "io.containerd.image.name": "docker.io/library/web:1" };
  const archive = await anArchive(t, {
    ...Object.fromEntries([index, ...amd.blobs, ...arm.blobs].map((content) => [pathOf(content), content])),
    "index.json": bytesOf({ manifests: [{ ...describe("index.v1+json", index), annotations }] }),
  });
  const [entry, ...others] = await listImages(archive);
  assert.ok(entry);
  assert.deepEqual([entry.names, entry.severalPlatforms, others], [["docker.io/library/web:1"], true, []]);
  const image = await entry.read("arm64");
  assert.deepEqual([image.manifest, image.config], [arm.manifest, arm.config]);
  const [layer] = [...image.layers.values()];
  assert.ok(layer);
  assert.equal((await buffer(archive.read(layer))).toString(), "layer of arm64");
  await assert.rejects(entry.read("riscv64"), /the image is not for linux\/riscv64/);
});

test("builds a manifest for archives of older versions of docker save", async (t) => {
  const { config, layer } = anImage("amd64");
  const archive = await anArchive(t, {
    "a.json": config,
    "l/layer.tar": layer,
    "manifest.json": bytesOf([{ Config: "a.json", RepoTags: ["web:1"], Layers: ["l/layer.tar"] }]),
  });
  const [entry] = await listImages(archive);
  assert.deepEqual(entry?.names, ["web:1"]);
  const image = await entry?.read("");
  const manifest = JSON.parse(String(image?.manifest));
  assert.equal(manifest.config.digest, digestOf(config));
  assert.deepEqual(manifest.layers, [describe("layer.v1.tar", layer)]);
});

test("refuses damaged, incomplete and unsupported archives", async (t) => {
  const { manifest, config, layer } = anImage("amd64");
  const index = { "index.json": bytesOf({ manifests: [describe("manifest.v1+json", manifest)] }) };
  const damaged = { ...index, [pathOf(manifest)]: config, [pathOf(config)]: config };
  const lacking = { ...index, [pathOf(manifest)]: manifest, [pathOf(layer)]: layer };
  for (const [files, message] of [
    [damaged, /is damaged: it has another digest/],
    [lacking, /the archive is incomplete, it has no blobs\/sha256\//],
  ] as const) {
    const [entry] = await listImages(await anArchive(t, files));
    await assert.rejects(async () => entry?.read(""), message);
  }
  await assert.rejects(listImages(await anArchive(t, {})), /is not an archive of images/);
});

test("requires --name for an image without a name, and refuses it for several images", () => {
  const entry = (...names: string[]) => ({
    ...{ names, digest: undefined, severalPlatforms: false, architectures: assert.fail, read: assert.fail },
  });
  const named = (images: ReturnType<typeof nameImages>) => images.map(({ name }) => name);
  assert.deepEqual(named(nameImages([entry("a:1", "a:2"), entry("b")], undefined, "x.tar")), [
    "a:1",
    "a:2",
    "b",
  ]);
  assert.deepEqual(named(nameImages([entry("a:1")], "c:3", "x.tar")), ["c:3"]);
  assert.throws(() => nameImages([entry()], undefined, "x.tar"), /without a name: choose one with --name/);
  assert.throws(() => nameImages([entry("a"), entry("b")], "c", "x.tar"), /x.tar has 2 images/);
  assert.throws(() => nameImages([], undefined, "x.tar"), /has no images/);
});

function anImage(architecture: string) {
  const layer = Buffer.from(`layer of ${architecture}`);
  const config = bytesOf({
    os: "linux",
    architecture,
    rootfs: { type: "layers", diff_ids: [digestOf(layer)] },
  });
  const manifest = bytesOf({
    schemaVersion: 2,
    config: describe("config.v1+json", config),
    layers: [describe("layer.v1.tar", layer)],
  });
  return { architecture, layer, config, manifest, blobs: [layer, config, manifest] };
}

function describe(type: string, content: Buffer) {
  return { mediaType: `${OCI}.${type}`, digest: digestOf(content), size: content.length };
}

function bytesOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function pathOf(content: Buffer): string {
  return `blobs/${digestOf(content).replace(":", "/")}`;
}

async function anArchive(t: TestContext, files: Readonly<Record<string, Buffer>>): Promise<ArchiveFile> {
  const dir = mkdtempSync(join(tmpdir(), "forage-archive-"));
  const path = join(dir, "images.tar");
  const entries = Object.entries(files).flatMap(([name, content]) => {
    const header = { path: name, type: "file", mode: 0o644, modifiedMs: 0, target: "" } as const;
    return [encodeHeader({ ...header, sizeBytes: content.length }), content, paddingFor(content.length)];
  });
  writeFileSync(path, Buffer.concat([...entries, TAR_END]));
  const archive = await ArchiveFile.open(path);
  t.after(async () => {
    await archive.close();
    rmSync(dir, { recursive: true });
  });
  return archive;
}
