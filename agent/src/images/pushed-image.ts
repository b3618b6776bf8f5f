import { createHash } from "node:crypto";
import { namedDigest } from "../runtime/image-reference.ts";
import { checkPlatform } from "../runtime/nerdctl/foreign-image.ts";

/** An image that a client sends: its manifest, its configuration and the layers named there. */
export interface PushedImage {
  readonly manifest: Uint8Array;
  readonly manifestDigest: string;
  readonly manifestType: string;
  readonly config: Uint8Array;
  readonly configDigest: string;
  /** The layers in the order of the manifest. The same layer may appear more than once. */
  readonly layers: readonly PushedLayer[];
  /** The indexes that lead to the manifest, outermost first. The image's name refers to the first one. */
  readonly indexes: readonly PushedIndex[];
}

export interface PushedIndex {
  readonly document: Uint8Array;
  readonly digest: string;
  readonly type: string;
}

export interface PushedLayer {
  readonly digest: string;
  readonly sizeBytes: number;
}

/** overlayfs can't mount more layers. */
const LAYERS_MAX = 127;
/** Far larger than images in practice, and smaller than the disk of a host. */
const IMAGE_MAX_BYTES = 256 * 1024 ** 3;

const MANIFEST_TYPES: ReadonlySet<string> = new Set([
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
]);
const OCI_INDEX = "application/vnd.oci.image.index.v1+json";
const INDEX_TYPES: ReadonlySet<string> = new Set([
  OCI_INDEX,
  "application/vnd.docker.distribution.manifest.list.v2+json",
]);
/** Indexes contain manifests; deeper nesting is not in use. */
export const INDEXES_MAX = 3;
const LAYER_TYPE =
  /^application\/vnd\.(oci\.image\.layer\.v1\.tar(\+(gzip|zstd))?|docker\.image\.rootfs\.diff\.tar(\.(gzip|zstd))?)$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Checks an image that is about to be sent. Throws an error that names the invalid field, or a digest that differs from
 * the name's.
 */
export function readPushedImage(
  reference: string,
  manifest: Uint8Array,
  config: Uint8Array,
  indexes: readonly Uint8Array[] = [],
): PushedImage {
  const { schemaVersion, mediaType, config: configRef, layers } = parse(manifest, "the manifest");
  if (schemaVersion !== 2 || typeof mediaType !== "string" || !MANIFEST_TYPES.has(mediaType))
    throw new Error(
      "the manifest is not an image manifest: mediaType must be that of OCI or of Docker's schema 2",
    );
  const configDigest = digestOf(config);
  if (field(configRef, "digest") !== configDigest || field(configRef, "size") !== config.length)
    throw new Error("the configuration is damaged: its size or digest is not that of manifest.config");
  if (!Array.isArray(layers) || layers.length === 0 || layers.length > LAYERS_MAX)
    throw new Error(`manifest.layers must have 1 to ${LAYERS_MAX} entries`);
  const read = layers.map(readLayer);
  const sum = read.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
  if (sum > IMAGE_MAX_BYTES) throw new Error(`the image is larger than ${IMAGE_MAX_BYTES} bytes`);
  const { os, architecture, rootfs } = parse(config, "the configuration");
  const diffIds = field(rootfs, "diff_ids");
  if (!Array.isArray(diffIds) || diffIds.length !== read.length)
    throw new Error("rootfs.diff_ids of the configuration must have one entry for each layer");
  checkPlatform(reference, `${String(os)}/${String(architecture)}`);
  const manifestDigest = digestOf(manifest);
  const chain = readIndexes(reference, indexes, manifestDigest);
  const image = { manifest, manifestDigest, manifestType: mediaType, config, configDigest };
  return { ...image, layers: read, indexes: chain };
}

/**
 * Returns the indexes. Each must name the next one, and the last must name the manifest. If the image's name has a
 * digest, it must be that of the first.
 */
function readIndexes(
  reference: string,
  indexes: readonly Uint8Array[],
  manifestDigest: string,
): readonly PushedIndex[] {
  if (indexes.length > INDEXES_MAX) throw new Error(`the image has more than ${INDEXES_MAX} indexes`);
  const digests = [...indexes.map(digestOf), manifestDigest];
  const named = namedDigest(reference);
  if (named !== undefined && named !== digests[0])
    throw new Error(`image ${reference} has another digest than its name: ${digests[0]}`);
  return indexes.map((document, at) => {
    const { mediaType = OCI_INDEX, manifests } = parse(document, "an index");
    if (typeof mediaType !== "string" || !INDEX_TYPES.has(mediaType) || !Array.isArray(manifests))
      throw new Error("an index of the image is not one of OCI or of Docker");
    if (!manifests.some((it) => field(it, "digest") === digests[at + 1]))
      throw new Error(`an index of the image does not name ${digests[at + 1]}`);
    return { document, digest: digests[at] ?? "", type: mediaType };
  });
}

/** Returns the layers that have to be sent, each once, in the order of the manifest. */
export function missingLayers(image: PushedImage, present: ReadonlySet<string>): readonly PushedLayer[] {
  const missing = new Map<string, PushedLayer>();
  for (const layer of image.layers) if (!present.has(layer.digest)) missing.set(layer.digest, layer);
  return [...missing.values()];
}

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function readLayer(layer: unknown, index: number): PushedLayer {
  const [mediaType, digest, size] = ["mediaType", "digest", "size"].map((name) => field(layer, name));
  const path = `manifest.layers[${index}]`;
  if (typeof mediaType !== "string" || !LAYER_TYPE.test(mediaType))
    throw new Error(`${path}.mediaType must be that of a tar archive, plain or compressed by gzip or zstd`);
  if (typeof digest !== "string" || !DIGEST.test(digest)) throw new Error(`${path}.digest must be a SHA-256`);
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0)
    throw new Error(`${path}.size must be a number of bytes`);
  return { digest, sizeBytes: size };
}

function parse(bytes: Uint8Array, what: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // The error is reported below.
  }
  throw new Error(`${what} of the image is not a JSON object`);
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
