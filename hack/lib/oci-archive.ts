import { createHash } from "node:crypto";
import { arch } from "node:os";
import { packTar, type TarEntry } from "./tar.ts";

export interface OciImage {
  /** The full reference with a tag, which the loaded image has. */
  readonly reference: string;
  /** The only layer, an uncompressed tar. */
  readonly layer: Buffer;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly env: readonly string[];
  /** Further fields of the image's configuration: `User`, `StopSignal`, … */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Default: this machine's. */
  readonly architecture?: string;
  /** Whether an index of several platforms refers to it. The archive contains this platform only. */
  readonly indexed?: boolean;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/**
 * Packs an image as an OCI layout in a tar, which `nerdctl load` can read. Equal input gives equal bytes and digests.
 */
export function packOciArchive(image: OciImage): Buffer {
  const config = encode({
    architecture: image.architecture ?? ARCHITECTURES[arch()] ?? arch(),
    os: "linux",
    config: { Entrypoint: image.entrypoint, Cmd: image.cmd, Env: image.env, ...image.config },
    rootfs: { type: "layers", diff_ids: [sha256(image.layer)] },
  });
  const manifest = encode({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: describe("application/vnd.oci.image.config.v1+json", config),
    layers: [describe("application/vnd.oci.image.layer.v1.tar", image.layer)],
  });
  const described = describe("application/vnd.oci.image.manifest.v1+json", manifest);
  const platform = { os: "linux", architecture: image.architecture ?? ARCHITECTURES[arch()] ?? arch() };
  const foreign = {
    ...describe(described.mediaType, encode("foreign")),
    platform: { os: "linux", architecture: "s390x" },
  };
  const platforms = encode({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [foreign, { ...described, platform }],
  });
  const index = encode({
    schemaVersion: 2,
    manifests: [
      {
        ...(image.indexed ? describe("application/vnd.oci.image.index.v1+json", platforms) : described),
        annotations: {
          "io.containerd.image.name": image.reference,
          "org.opencontainers.image.ref.name": image.reference.slice(image.reference.lastIndexOf(":") + 1),
        },
      },
    ],
  });
  const blobs = [config, image.layer, manifest, ...(image.indexed ? [platforms] : [])].map(
    (content): TarEntry => ({
      type: "file",
      path: `blobs/sha256/${sha256(content).slice("sha256:".length)}`,
      content,
    }),
  );
  return packTar([
    { type: "directory", path: "blobs/" },
    { type: "directory", path: "blobs/sha256/" },
    ...blobs,
    { type: "file", path: "index.json", content: index },
    { type: "file", path: "oci-layout", content: encode({ imageLayoutVersion: "1.0.0" }) },
  ]);
}

export function sha256(content: Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

function describe(mediaType: string, content: Uint8Array): Descriptor {
  return { mediaType, digest: sha256(content), size: content.length };
}

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
