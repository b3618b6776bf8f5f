import { createHash } from "node:crypto";
import { encodeHeader, paddingFor, TAR_END } from "@forage/archive";
import type { PushedImage, PushedLayer } from "./pushed-image.ts";

/**
 * Packs an image as a tar archive with an OCI layout and the given layers. They are read from `content`, one after the
 * other, and their digests are checked. If a layer is damaged or truncated, throws before the end of the archive.
 */
export async function* packLayout(
  name: string,
  image: PushedImage,
  layers: readonly PushedLayer[],
  content: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const { manifest, manifestDigest, manifestType, config, configDigest, indexes } = image;
  yield* entry("oci-layout", jsonOf({ imageLayoutVersion: "1.0.0" }));
  const [outermost = { document: manifest, digest: manifestDigest, type: manifestType }] = indexes;
  const { type: mediaType, digest, document } = outermost;
  const descriptor = { mediaType, digest, size: document.length };
  const annotations = { "io.containerd.image.name": name };
  yield* entry("index.json", jsonOf({ schemaVersion: 2, manifests: [{ ...descriptor, annotations }] }));
  for (const index of indexes) yield* entry(pathOf(index.digest), index.document);
  yield* entry(pathOf(manifestDigest), manifest);
  yield* entry(pathOf(configDigest), config);
  const source = new LayerSource(content);
  for (const layer of layers) {
    yield header(pathOf(layer.digest), layer.sizeBytes);
    yield* source.read(layer);
    yield paddingFor(layer.sizeBytes);
  }
  await source.expectEnd();
  yield TAR_END;
}

/** Splits a stream into layers. */
class LayerSource {
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(content: AsyncIterable<Buffer>) {
    this.#chunks = content[Symbol.asyncIterator]();
  }

  async *read({ digest, sizeBytes }: PushedLayer): AsyncGenerator<Buffer> {
    const hash = createHash("sha256");
    for (let left = sizeBytes; left > 0; ) {
      if (!(await this.#fill())) throw new Error(`layer ${digest} was cut off: push the image again`);
      const piece = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(piece.length);
      left -= piece.length;
      hash.update(piece);
      yield piece;
    }
    if (`sha256:${hash.digest("hex")}` !== digest)
      throw new Error(`layer ${digest} is damaged: the received data has another digest`);
  }

  async expectEnd(): Promise<void> {
    if (await this.#fill()) throw new Error("more data arrived than the missing layers");
  }

  async #fill(): Promise<boolean> {
    while (this.#held.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) return false;
      this.#held = next.value;
    }
    return true;
  }
}

function* entry(path: string, content: Uint8Array): Generator<Buffer> {
  yield header(path, content.length);
  yield Buffer.from(content);
  yield paddingFor(content.length);
}

function header(path: string, sizeBytes: number): Buffer {
  return encodeHeader({ path, type: "file", mode: 0o644, modifiedMs: 0, sizeBytes, target: "" });
}

function pathOf(digest: string): string {
  return `blobs/${digest.replace(":", "/")}`;
}

function jsonOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
