import { CliError } from "../errors.ts";
import { fullName } from "../images/image-name.ts";

/** The list of contents of a site bundle, which is one of its files. */
export interface BundleContents {
  readonly images: readonly BundleImage[];
  readonly files: readonly BundleFileEntry[];
}

export interface BundleImage {
  /** The full name: `docker.io/library/web:1`. */
  readonly name: string;
  /** The digest of the manifest or index to which the name refers. */
  readonly digest: string;
  /** The platforms whose layers are in the bundle, such as `amd64`. */
  readonly architectures: readonly string[];
}

/** A file that is not part of an image: the manifests, or a package. */
export interface BundleFileEntry {
  readonly path: string;
  readonly digest: string;
  readonly sizeBytes: number;
}

export const CONTENTS_PATH = "forage-bundle.json";
export const MANIFESTS_PATH = "manifests.yaml";
/** The most images. Each is read and sent separately; a site has tens of them. */
export const IMAGES_MAX = 1_000;
const VERSION = 1;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const FILE_PATH = /^(manifests\.yaml|packages\/[\w][\w.+~:-]*\.deb)$/;

export function writeContents({ images, files }: BundleContents): Buffer {
  return Buffer.from(`${JSON.stringify({ version: VERSION, images, files }, undefined, 2)}\n`);
}

/** Parses the list. Throws REFUSED with the invalid field. Unknown fields are ignored. */
export function parseContents(bytes: Buffer, archive: string): BundleContents {
  const fail = (why: string): never => {
    throw new CliError("REFUSED", `${archive}: ${CONTENTS_PATH}: ${why}`);
  };
  const { version, images, files } = recordOf(parseJson(bytes)) ?? fail("is not a JSON object");
  if (version !== VERSION)
    fail(`version is ${JSON.stringify(version)}, this command reads version ${VERSION}: update it`);
  if (!Array.isArray(images) || images.length > IMAGES_MAX)
    fail(`images is not a list of up to ${IMAGES_MAX}`);
  if (!Array.isArray(files)) fail("files is not a list");
  return {
    images: (images as readonly unknown[]).map(
      (image, index) => readImage(image) ?? fail(`images[${index}] is not an image`),
    ),
    files: (files as readonly unknown[]).map(
      (file, index) => readFile(file) ?? fail(`files[${index}] is not a file`),
    ),
  };
}

function readImage(value: unknown): BundleImage | undefined {
  const { name, digest, architectures } = recordOf(value) ?? {};
  if (typeof name !== "string" || typeof digest !== "string" || !DIGEST.test(digest)) return undefined;
  if (fullName(name) !== name) return undefined;
  if (!Array.isArray(architectures) || architectures.length === 0) return undefined;
  return { name, digest, architectures: architectures.map(String) };
}

function readFile(value: unknown): BundleFileEntry | undefined {
  const { path, digest, sizeBytes } = recordOf(value) ?? {};
  if (typeof path !== "string" || !FILE_PATH.test(path)) return undefined;
  if (typeof digest !== "string" || !DIGEST.test(digest) || typeof sizeBytes !== "number") return undefined;
  return { path, digest, sizeBytes };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}
