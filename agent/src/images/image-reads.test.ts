import assert from "node:assert/strict";
import { test } from "node:test";
import { ImageReads } from "./image-reads.ts";
import { digestOf } from "./pushed-image.ts";

const NAME = "registry.invalid/shop/web:1";
const OCI = "application/vnd.oci.image";
const { signal } = new AbortController();

test("describes the image, and sends the missing layers", async () => {
  const host = aHost();
  const { described, sent } = await host.send("shop", [host.layers[1] ?? ""]);
  assert.deepEqual(described, [host.manifest, host.config]);
  assert.equal(sent, "app");
});

test("sends the host's platform from an index", async () => {
  const host = aHost();
  const platform = (architecture: string) => ({ os: "linux", architecture });
  const index = host.store({
    manifests: [
      { digest: digestOf(Buffer.from("foreign")), platform: platform("riscv64") },
      { digest: digestOf(host.manifest), platform: platform("amd64") },
    ],
  });
  host.images.set(NAME, digestOf(index));
  assert.deepEqual((await host.send("shop", [])).described, [host.manifest, host.config]);
  const other = host.store({ manifests: [{ digest: digestOf(host.manifest), platform: platform("arm64") }] });
  host.images.set(NAME, digestOf(other));
  await assert.rejects(host.send("shop", []), /is not for linux\/amd64, which this node is/);
});

test("answers the same for an image of other namespaces as for an absent one", async () => {
  const host = aHost();
  const refused = { message: `image ${NAME} is not on this node for the namespace other` };
  await assert.rejects(host.send("other", []), refused);
  host.images.clear();
  await assert.rejects(host.send("other", []), refused);
});

test("rejects a layer that the image does not have", async () => {
  const host = aHost();
  const secret = digestOf(host.store({ secret: true }));
  await assert.rejects(host.send("shop", [secret]), new RegExp(`the image has no layer ${secret}`));
});

test("sends nothing of a damaged image", async () => {
  for (const part of ["manifest", "config"] as const) {
    const host = aHost();
    host.content.set(digestOf(host[part]), Buffer.from("{}"));
    await assert.rejects(host.send("shop", []), /is damaged on this node/);
  }
});

test("reads no document larger than a manifest can be", async () => {
  const host = aHost();
  const large = host.store(Buffer.alloc(1024 * 1024 + 1, " "));
  host.images.set(NAME, digestOf(large));
  await assert.rejects(host.send("shop", []), /is larger than 1048576 bytes/);
  const largest = host.store(Buffer.alloc(1024 * 1024, " "));
  host.images.set(NAME, digestOf(largest));
  await assert.rejects(host.send("shop", []), /is not a JSON object/);
});

test("describes the indexes between the digest in the name and the manifest", async () => {
  const host = aHost();
  const platform = { os: "linux", architecture: "amd64" };
  const index = host.store({ manifests: [{ digest: digestOf(host.manifest), platform }] });
  const named = `registry.invalid/shop/web@${digestOf(index)}`;
  host.images.set(named, digestOf(index));
  assert.deepEqual((await host.send("shop", [], named)).described, [host.manifest, host.config, index]);
  const wrong = `registry.invalid/shop/web@${digestOf(host.config)}`;
  host.images.set(wrong, digestOf(index));
  await assert.rejects(host.send("shop", [], wrong), /has another digest than its name/);
});

test("waits for its share of the rate before each piece, and sends nothing if disabled", async () => {
  const host = aHost();
  await host.send("shop", host.layers);
  assert.deepEqual(
    host.paced,
    ["base", "app"].map(({ length }) => length),
  );
  await assert.rejects(aHost(0).send("shop", []), /this node sends no images/);
});

/** Returns a host with one image of two layers, for the namespace `shop`. */
function aHost(transfers = 2) {
  const paced: number[] = [];
  const content = new Map<string, Buffer>();
  const store = (value: unknown): Buffer => {
    const bytes = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value));
    content.set(digestOf(bytes), bytes);
    return bytes;
  };
  const layers = ["base", "app"].map((text) => store(Buffer.from(text)));
  const describe = (type: string, bytes: Buffer) => ({
    ...{ mediaType: `${OCI}.${type}`, digest: digestOf(bytes), size: bytes.length },
  });
  const rootfs = { type: "layers", diff_ids: layers.map(digestOf) };
  const config = store({ os: "linux", architecture: "amd64", rootfs });
  const manifest = store({
    ...{ schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json` },
    config: describe("config.v1+json", config),
    layers: layers.map((layer) => describe("layer.v1.tar", layer)),
  });
  const images = new Map([[NAME, digestOf(manifest)]]);
  const reads = new ImageReads({
    ...{ architecture: "amd64", transfers, pace: async (bytes) => void paced.push(bytes) },
    access: { isOpenTo: (_reference, namespace) => namespace === "shop" },
    content: {
      target: async (reference) => images.get(reference),
      read: async function* (digest) {
        const bytes = content.get(digest);
        assert.ok(bytes, digest);
        yield bytes;
      },
    },
  });
  const send = async (namespace: string, missing: readonly string[], image = NAME) => {
    const described: Uint8Array[] = [];
    let sent = "";
    await reads.send(
      { image, namespace },
      {
        describe: async (manifest, config, indexes) => {
          described.push(manifest, config, ...indexes);
          return missing;
        },
        data: async (chunk) => {
          sent += Buffer.from(chunk).toString();
        },
      },
      signal,
    );
    return { described, sent };
  };
  return { content, store, images, manifest, config, layers: layers.map(digestOf), send, paced };
}
