import { Semaphore } from "@forage/common/semaphore";
import type { ImageAccess } from "../pods/image-access.ts";
import { namedDigest, normalizeImage } from "../runtime/image-reference.ts";
import type { ImageContent } from "./image-content.ts";
import { digestOf, INDEXES_MAX, type PushedImage, readPushedImage } from "./pushed-image.ts";

export interface ImageReadsOptions {
  readonly content: ImageContent;
  readonly access: Pick<ImageAccess, "isOpenTo">;
  /** The host's architecture in the terms of images. Other platforms of an image are not stored. */
  readonly architecture: string;
  /** The number of images sent at the same time. 0 disables sending. */
  readonly transfers: number;
  /** Resolves once this many more bytes may be sent. All transfers share the rate. */
  readonly pace: (bytes: number, signal: AbortSignal) => Promise<void>;
}

/** Receives an image. */
export interface ImageSink {
  /** Receives the description of the image, and returns the layers that are missing at the receiver. */
  describe(
    manifest: Uint8Array,
    config: Uint8Array,
    indexes: readonly Uint8Array[],
  ): Promise<readonly string[]>;
  data(chunk: Uint8Array): Promise<void>;
}

/** The coordinator does not relay larger documents. */
const DOCUMENT_MAX_BYTES = 1024 * 1024;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

interface Descriptor {
  readonly digest?: unknown;
  readonly platform?: { readonly os?: unknown; readonly architecture?: unknown };
}

/** Sends images of this host to other hosts. */
export class ImageReads {
  readonly #options: ImageReadsOptions;
  readonly #places: Semaphore;

  constructor(options: ImageReadsOptions) {
    this.#options = options;
    this.#places = new Semaphore(options.transfers);
  }

  /** Sends an image. Errors are for the client. */
  async send(
    { image: name, namespace }: { readonly image: string; readonly namespace: string },
    sink: ImageSink,
    signal: AbortSignal,
  ): Promise<void> {
    const reference = normalizeImage(name);
    const { content, pace, transfers } = this.#options;
    if (transfers === 0)
      throw new Error("this node sends no images: images.transfers is 0 in its agent.yaml");
    await this.#places.run(signal, async () => {
      const { manifest, config, layers, indexes } = await this.#find(reference, namespace, signal);
      const documents = indexes.map(({ document }) => document);
      const missing = await sink.describe(manifest, config, documents);
      const known = new Set(layers.map(({ digest }) => digest));
      const foreign = missing.find((digest) => !known.has(digest));
      if (foreign !== undefined) throw new Error(`the image has no layer ${foreign}`);
      for (const digest of missing)
        for await (const chunk of content.read(digest, signal)) {
          await pace(chunk.length, signal);
          await sink.data(chunk);
        }
    });
  }

  async #find(reference: string, namespace: string, signal: AbortSignal): Promise<PushedImage> {
    const { content, access } = this.#options;
    const target = await content.target(reference, signal);
    // The same answer for both cases hides the images of other namespaces.
    if (target === undefined || !access.isOpenTo(reference, namespace))
      throw new Error(`image ${reference} is not on this node for the namespace ${namespace}`);
    const indexes: Buffer[] = [];
    const manifest = await this.#manifest(reference, target, indexes, signal);
    const { config } = parse(manifest) as { readonly config?: Descriptor };
    const chain = namedDigest(reference) === undefined ? [] : indexes;
    return readPushedImage(reference, manifest, await this.#document(config?.digest, signal), chain);
  }

  /** Returns the manifest for this host and the indexes that lead to it, to which a name with a digest may refer. */
  async #manifest(
    reference: string,
    digest: unknown,
    indexes: Buffer[],
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { architecture } = this.#options;
    const document = await this.#document(digest, signal);
    const { manifests } = parse(document) as { readonly manifests?: readonly Descriptor[] };
    if (manifests === undefined) return document;
    const chosen = manifests.find(
      ({ platform }) => platform?.os === "linux" && platform.architecture === architecture,
    );
    if (chosen === undefined || indexes.length === INDEXES_MAX)
      throw new Error(`image ${reference} is not for linux/${architecture}, which this node is`);
    indexes.push(document);
    return this.#manifest(reference, chosen.digest, indexes, signal);
  }

  async #document(digest: unknown, signal: AbortSignal): Promise<Buffer> {
    if (typeof digest !== "string" || !DIGEST.test(digest))
      throw new Error("the image names no SHA-256 digest");
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of this.#options.content.read(digest, signal)) {
      bytes += piece.length;
      if (bytes > DOCUMENT_MAX_BYTES) throw new Error(`${digest} is larger than ${DOCUMENT_MAX_BYTES} bytes`);
      pieces.push(piece);
    }
    const document = Buffer.concat(pieces);
    if (digestOf(document) !== digest) throw new Error(`${digest} is damaged on this node`);
    return document;
  }
}

function parse(document: Buffer): object {
  try {
    const value: unknown = JSON.parse(document.toString());
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // The error is reported below.
  }
  throw new Error("a manifest of the image is not a JSON object");
}
