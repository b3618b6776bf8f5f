import { createHash } from "node:crypto";
import { CliError } from "../errors.ts";
import type { ArchiveFile, ArchivePart } from "../images/archive-file.ts";
import { type ArchiveEntry, listImages } from "../images/archive-images.ts";
import {
  type BundleContents,
  type BundleImage,
  CONTENTS_PATH,
  MANIFESTS_PATH,
  parseContents,
} from "./contents.ts";

/** A site bundle whose digests were all verified. */
export interface SiteBundle {
  readonly archive: ArchiveFile;
  readonly contents: BundleContents;
  readonly images: readonly StoredImage[];
  /** The text of the manifests; undefined if there are none. */
  readonly manifests: string | undefined;
}

export interface StoredImage extends BundleImage {
  readonly entry: ArchiveEntry;
  /** The size of all layers of all platforms. */
  readonly sizeBytes: number;
}

/** Reads a bundle and verifies all of it. Throws REFUSED if it is damaged or incomplete. */
export async function readBundle(archive: ArchiveFile): Promise<SiteBundle> {
  if (archive.part(CONTENTS_PATH) === undefined)
    throw new CliError(
      "REFUSED",
      `${archive.path} is not a site bundle, it has no ${CONTENTS_PATH}: archives of images are for image push`,
    );
  const contents = parseContents(await archive.document(CONTENTS_PATH), archive.path);
  for (const { path, digest } of contents.files) {
    const part = archive.part(path);
    if (part === undefined) throw incomplete(archive, path);
    await assertDigest(archive, path, part, digest);
  }
  const entries = contents.images.length === 0 ? [] : await listImages(archive);
  const checked = new Set<string>();
  const images: StoredImage[] = [];
  for (const image of contents.images) images.push(await readImage(archive, image, entries, checked));
  const hasManifests = contents.files.some(({ path }) => path === MANIFESTS_PATH);
  const manifests = hasManifests ? (await archive.document(MANIFESTS_PATH)).toString() : undefined;
  return { archive, contents, images, manifests };
}

async function readImage(
  archive: ArchiveFile,
  image: BundleImage,
  entries: readonly ArchiveEntry[],
  checked: Set<string>,
): Promise<StoredImage> {
  const entry = entries.find(({ digest, names }) => digest === image.digest && names.includes(image.name));
  if (entry === undefined) throw incomplete(archive, `image ${image.name} with the digest ${image.digest}`);
  const layers = new Map<string, ArchivePart>();
  for (const architecture of image.architectures)
    for (const [digest, part] of (await entry.read(architecture)).layers) layers.set(digest, part);
  for (const [digest, part] of layers) {
    if (checked.has(digest)) continue;
    await assertDigest(archive, `layer ${digest} of ${image.name}`, part, digest);
    checked.add(digest);
  }
  const sizeBytes = [...layers.values()].reduce((sum, part) => sum + part.sizeBytes, 0);
  return { ...image, entry, sizeBytes };
}

async function assertDigest(
  archive: ArchiveFile,
  what: string,
  part: ArchivePart,
  digest: string,
): Promise<void> {
  const hash = createHash("sha256");
  for await (const chunk of archive.read(part)) hash.update(chunk);
  if (`sha256:${hash.digest("hex")}` === digest) return;
  throw new CliError("REFUSED", `${archive.path}: ${what} is damaged: it has another digest`);
}

function incomplete({ path }: ArchiveFile, what: string): CliError {
  return new CliError("REFUSED", `${path}: the bundle is incomplete, it has no ${what}: create it again`);
}
