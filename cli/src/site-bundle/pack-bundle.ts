import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { encodeHeader, paddingFor, TAR_END } from "@forage/archive";
import { CliError } from "../errors.ts";
import type { ArchiveFile, ArchivePart } from "../images/archive-file.ts";
import { digestOf } from "../images/archive-images.ts";
import { type Candidate, type ChosenImage, chooseImage } from "./choose-image.ts";
import {
  type BundleFileEntry,
  type BundleImage,
  CONTENTS_PATH,
  MANIFESTS_PATH,
  writeContents,
} from "./contents.ts";

export interface BundleInput {
  /** The full names, each once. */
  readonly images: readonly string[];
  /** The platforms; empty means all available ones. */
  readonly architectures: readonly string[];
  readonly manifests: Buffer | undefined;
  readonly packages: readonly Package[];
  /** Opens the archives that have an image. They are closed before the next image is opened. */
  readonly find: (name: string) => Promise<FoundImage>;
  readonly onImage: (image: BundleImage) => void;
}

export interface Package {
  /** The file name in the bundle, without a directory. */
  readonly name: string;
  /** The path on this machine. */
  readonly path: string;
  readonly sizeBytes: number;
}

export interface FoundImage {
  readonly candidates: readonly Candidate[];
  close(): Promise<void>;
}

/**
 * Yields a site bundle: an OCI layout in a tar archive with the images, manifests, packages and a
 * list of contents. Layers shared by images are written once, and every digest is verified. Equal
 * input gives equal bytes. At most a chunk of a layer is in memory.
 */
export async function* packBundle(input: BundleInput): AsyncGenerator<Buffer> {
  const written = new Set<string>();
  const images: BundleImage[] = [];
  const descriptors: object[] = [];
  const files: BundleFileEntry[] = [];
  yield* entry("oci-layout", jsonOf({ imageLayoutVersion: "1.0.0" }));
  for (const name of input.images) {
    const found = await input.find(name);
    try {
      const chosen = await chooseImage(name, found.candidates, input.architectures);
      yield* packImage(chosen, written);
      const image = {
        name,
        digest: digestOf(chosen.top),
        architectures: [...chosen.platforms.keys()].sort(),
      };
      images.push(image);
      descriptors.push(descriptorOf(chosen));
      input.onImage(image);
    } finally {
      await found.close();
    }
  }
  yield* entry("index.json", jsonOf({ schemaVersion: 2, manifests: descriptors }));
  if (input.manifests !== undefined) {
    files.push({
      path: MANIFESTS_PATH,
      digest: digestOf(input.manifests),
      sizeBytes: input.manifests.length,
    });
    yield* entry(MANIFESTS_PATH, input.manifests);
  }
  for (const each of input.packages) {
    const path = `packages/${each.name}`;
    files.push({ path, digest: yield* packFile(path, each), sizeBytes: each.sizeBytes });
  }
  yield* entry(CONTENTS_PATH, writeContents({ images, files }));
  yield TAR_END;
}

function descriptorOf({ name, top, topType }: ChosenImage): object {
  return {
    ...{ mediaType: topType, digest: digestOf(top), size: top.length },
    annotations: { "io.containerd.image.name": name },
  };
}

async function* packImage({ top, platforms }: ChosenImage, written: Set<string>): AsyncGenerator<Buffer> {
  yield* packDocument(top, written);
  for (const { archive, image } of platforms.values()) {
    for (const document of [...image.indexes, image.manifest, image.config])
      yield* packDocument(document, written);
    for (const [digest, part] of image.layers) {
      if (written.has(digest)) continue;
      written.add(digest);
      yield* packLayer(archive, digest, part);
    }
  }
}

function* packDocument(content: Buffer, written: Set<string>): Generator<Buffer> {
  const digest = digestOf(content);
  if (written.has(digest)) return;
  written.add(digest);
  yield* entry(pathOf(digest), content);
}

async function* packLayer(archive: ArchiveFile, digest: string, part: ArchivePart): AsyncGenerator<Buffer> {
  yield header(pathOf(digest), part.sizeBytes);
  const hash = createHash("sha256");
  for await (const chunk of archive.read(part)) {
    hash.update(chunk);
    yield chunk;
  }
  if (`sha256:${hash.digest("hex")}` !== digest)
    throw new CliError("REFUSED", `${archive.path}: layer ${digest} is damaged: it has another digest`);
  yield paddingFor(part.sizeBytes);
}

/** Yields a file. Returns its digest. */
async function* packFile(path: string, file: Package): AsyncGenerator<Buffer, string> {
  yield header(path, file.sizeBytes);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(file.path) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > file.sizeBytes) break;
    hash.update(chunk);
    yield chunk;
  }
  if (bytes !== file.sizeBytes)
    throw new CliError("REFUSED", `${file.path} has changed meanwhile: start again`);
  yield paddingFor(file.sizeBytes);
  return `sha256:${hash.digest("hex")}`;
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
