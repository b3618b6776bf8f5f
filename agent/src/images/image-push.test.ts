import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { readTar } from "@forage/archive";
import { normalizeImage } from "../runtime/image-reference.ts";
import type { ImageImport } from "./image-import.ts";
import { ImagePushes, type Push } from "./image-push.ts";
import { ImageRecords } from "./image-records.ts";
import { digestOf } from "./pushed-image.ts";

const NAME = "registry.invalid/shop/web:1";
const { signal } = new AbortController();

test("requests only the missing layers, and stores the image under its name", async (t) => {
  const host = await aHost(t);
  host.images.stored.add(digestOf(Buffer.from("base")));
  const asked = await host.push(anImage(["base", "app", "app"]), ["app"], "");
  assert.deepEqual(asked, [digestOf(Buffer.from("app"))]);
  assert.deepEqual(host.images.names, new Set([NAME]));
  assert.deepEqual(host.events, [`stored ${NAME}`]);
  assert.deepEqual(await host.push(anImage(["base", "app", "app"]), [], ""), []);
});

for (const [what, sent, message] of [
  ["damaged", ["apX"], /layer sha256:[0-9a-f]{64} is damaged/],
  ["cut off", ["a"], /layer sha256:[0-9a-f]{64} was cut off/],
  ["followed by something else", ["app", "x"], /more data arrived than the missing layers/],
] as const) {
  test(`does not store an image with a layer that is ${what}`, async (t) => {
    const host = await aHost(t);
    await assert.rejects(host.push(anImage(["app"]), sent, ""), message);
    assert.deepEqual([host.images.names, host.events], [new Set(), []]);
  });
}

test("a namespace can't replace or remove an image that others may use", async (t) => {
  const host = await aHost(t);
  host.images.names.add(NAME);
  const refused = /is on this node for other namespaces too/;
  await assert.rejects(host.push(anImage(["app"]), ["app"], "shop"), refused);
  await assert.rejects(host.pushes.remove(NAME, "shop", signal), refused);
  await host.push(anImage(["app"]), ["app"], "");
  await assert.rejects(host.push(anImage(["app"]), ["app"], "shop"), refused);
});

test("an image pushed for a namespace is usable only in it, and the namespace may replace and remove it", async (t) => {
  const host = await aHost(t);
  await host.push(anImage(["app"]), ["app"], "shop");
  const may = (namespace: string) => host.records.isOpenTo(NAME, namespace);
  assert.deepEqual([may("shop"), may("other")], [true, false]);
  await assert.rejects(host.push(anImage(["b"]), ["b"], "other"), /for other namespaces too/);
  await host.push(anImage(["b"]), ["b"], "shop");
  assert.equal(await host.pushes.remove(NAME, "shop", signal), "removed");
  assert.deepEqual(host.events.at(-1), `removed ${NAME}`);
});

test("a namespace has to send layers that it has not sent before, even if others have them on the host", async (t) => {
  const host = await aHost(t);
  await host.push(anImage(["secret"], "registry.invalid/other:1"), ["secret"], "other");
  const asked = await host.push(anImage(["secret"]), ["secret"], "shop");
  assert.deepEqual(asked, [digestOf(Buffer.from("secret"))]);
  assert.deepEqual(await host.push(anImage(["secret"], "registry.invalid/shop/api:1"), [], "shop"), []);
});

test("keeps a usable image of the same name if that is requested", async (t) => {
  const host = await aHost(t);
  await host.push(anImage(["app"]), ["app"], "");
  assert.deepEqual(await host.push({ ...anImage(["b"]), keepPresent: true }, [], "shop"), []);
  assert.equal(host.images.stored.has(digestOf(Buffer.from("b"))), false);
  assert.equal(host.events.length, 1);
  const private_ = anImage(["c"], "registry.invalid/shop/private:1");
  await host.push(private_, ["c"], "other");
  await assert.rejects(host.push({ ...private_, keepPresent: true }, [], "shop"), /for other namespaces too/);
});

test("an image from another node may skip every present layer, and each namespace is added to it", async (t) => {
  const host = await aHost(t);
  host.images.stored.add(digestOf(Buffer.from("base")));
  const sent = anImage(["base", "app"]);
  const name = `registry.invalid/shop/web@${digestOf(sent.manifest)}`;
  const shared = { ...sent, image: name, fromNode: true };
  assert.deepEqual(await host.push(shared, ["app"], "shop"), [digestOf(Buffer.from("app"))]);
  assert.deepEqual(await host.push(shared, [], "other"), []);
  const may = (namespace: string) => host.records.isOpenTo(name, namespace);
  assert.deepEqual([may("shop"), may("other"), may("third")], [true, true, false]);
  assert.deepEqual(host.events, [`stored ${name}`, `stored ${name}`]);
  // With a tag it counts as a push of a client.
  await host.push({ ...sent, fromNode: true }, ["base", "app"], "shop");
  await assert.rejects(host.push({ ...sent, fromNode: true }, [], "other"), /for other namespaces too/);
});

test("stores an image named by the digest of an index with the index, and rejects a wrong digest", async (t) => {
  const host = await aHost(t);
  const sent = anImage(["app"]);
  const index = (digest: string) => Buffer.from(JSON.stringify({ manifests: [{ digest }] }));
  const right = index(digestOf(sent.manifest));
  const named = (bytes: Buffer) => `registry.invalid/shop/web@${digestOf(bytes)}`;
  await host.push({ ...sent, image: named(right), indexes: [right] }, ["app"], "shop");
  assert.ok(host.images.names.has(named(right)) && host.images.stored.has(digestOf(right)));
  const push = (image: string, indexes: readonly Buffer[]) =>
    host.push({ ...sent, image, indexes, fromNode: true }, ["app"], "shop");
  await assert.rejects(push(named(right), []), /has another digest than its name/);
  const other = index(digestOf(sent.config));
  await assert.rejects(push(named(other), [other]), /an index of the image does not name sha256/);
});

test("rejects an image without enough disk space before any layer is sent", async (t) => {
  const host = await aHost(t, 11);
  await assert.rejects(
    host.push(anImage(["app"]), [], ""),
    /disk has 11 bytes left; the image needs up to 12/,
  );
});

for (const [what, change, message] of [
  ["no JSON", { manifest: Buffer.from("{") }, /the manifest of the image is not a JSON object/],
  ["of another kind", { manifest: Buffer.from('{"schemaVersion":1}') }, /is not an image manifest/],
  ["with another configuration", { config: Buffer.from("{}") }, /the configuration is damaged/],
] as const) {
  test(`rejects a manifest that is ${what}`, async (t) => {
    const host = await aHost(t);
    await assert.rejects(host.push({ ...anImage(["app"]), ...change }, ["app"], ""), message);
  });
}

test("rejects layers that are not tar archives, and names the field", async (t) => {
  const host = await aHost(t);
  const image = anImage(["app"]);
  const manifest = Buffer.from(image.manifest.toString().replace("layer.v1.tar", "layer.v1.exe"));
  await assert.rejects(
    host.push({ ...image, manifest }, ["app"], ""),
    /manifest.layers\[0\].mediaType must be/,
  );
});

test("rejects an image of another platform", async (t) => {
  const host = await aHost(t);
  await assert.rejects(
    host.push(anImage(["app"], NAME, "nonesuch"), ["app"], ""),
    /is for linux\/nonesuch; this host is/,
  );
});

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

function anImage(
  layers: readonly string[],
  image = NAME,
  architecture = ARCHITECTURES[arch()] ?? arch(),
): Omit<Push, "namespace"> & { readonly manifest: Buffer; readonly config: Buffer } {
  const contents = layers.map((layer) => Buffer.from(layer));
  const rootfs = { type: "layers", diff_ids: contents.map(digestOf) };
  const config = Buffer.from(JSON.stringify({ os: "linux", architecture, rootfs }));
  const describe = (type: string, content: Buffer) => ({
    mediaType: `application/vnd.oci.image.${type}`,
    digest: digestOf(content),
    size: content.length,
  });
  const manifest = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: describe("config.v1+json", config),
    layers: contents.map((content) => describe("layer.v1.tar", content)),
  };
  return { image, manifest: Buffer.from(JSON.stringify(manifest)), config };
}

/** Stores the content of archives. Stores an image only if its archive is complete. */
class FakeImport implements ImageImport {
  readonly stored = new Set<string>();
  readonly names = new Set<string>();

  async contents(): Promise<ReadonlySet<string>> {
    return new Set(this.stored);
  }

  async load(archive: AsyncIterable<Buffer>): Promise<void> {
    const files = new Map<string, Buffer>();
    for await (const { header, content } of readTar(archive)) files.set(header.path, await buffer(content));
    for (const [path, content] of files) if (path.startsWith("blobs/")) this.stored.add(digestOf(content));
    const index = JSON.parse(String(files.get("index.json")));
    this.names.add(index.manifests[0].annotations["io.containerd.image.name"]);
  }

  async tag(name: string, further: string): Promise<void> {
    assert.ok(this.names.has(name));
    this.names.add(further);
  }

  async untag(name: string): Promise<void> {
    this.names.delete(name);
  }
}

async function aHost(t: TestContext, freeBytes = 2 ** 40) {
  const dir = mkdtempSync(join(tmpdir(), "forage-push-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const records = await ImageRecords.open({ dir, nowMs: () => 1, onError: assert.ifError });
  const images = new FakeImport();
  const events: string[] = [];
  const pushes = new ImagePushes({
    importer: images,
    records,
    runtime: {
      hasImage: async (reference) => images.names.has(normalizeImage(reference)),
      removeImage: async (reference) => (images.names.delete(reference) ? "removed" : "absent"),
      imageStorage: async () => dir,
    },
    freeBytes: async () => freeBytes,
    events: {
      stored: (reference) => events.push(`stored ${reference}`),
      removed: (reference) => events.push(`removed ${reference}`),
    },
  });
  /** Pushes an image and returns the digests of the layers that were requested. */
  const push = async (image: Omit<Push, "namespace">, layers: readonly string[], namespace: string) => {
    let asked: readonly string[] = [];
    const content = async function* () {
      for (const layer of layers) yield Buffer.from(layer);
    };
    const ask = async (missing: readonly string[]) => {
      asked = missing;
    };
    await pushes.push({ ...image, namespace }, content(), ask, signal);
    return asked;
  };
  return { records, images, events, pushes, push };
}
