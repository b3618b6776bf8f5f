import { createHash } from "node:crypto";
import { CliError } from "../errors.ts";
import type { ArchiveFile, ArchivePart } from "./archive-file.ts";

/** An image of an archive, for one platform. */
export interface ArchiveImage {
  readonly manifest: Buffer;
  readonly config: Buffer;
  /** By digest. */
  readonly layers: ReadonlyMap<string, ArchivePart>;
}

/** An image of an archive, possibly for several platforms. */
export interface ArchiveEntry {
  /** Empty for an image without a name. */
  readonly names: readonly string[];
  /** Whether `read` has a choice. */
  readonly severalPlatforms: boolean;
  /** Reads the image for an architecture such as `amd64`. Throws when the archive has none for it. */
  read(architecture: string): Promise<ArchiveImage>;
}

interface Descriptor {
  readonly mediaType?: unknown;
  readonly digest?: unknown;
  readonly size?: unknown;
  readonly platform?: { readonly os?: unknown; readonly architecture?: unknown };
  readonly annotations?: Readonly<Record<string, unknown>>;
}

interface DockerEntry {
  readonly Config?: unknown;
  readonly RepoTags?: unknown;
  readonly Layers?: unknown;
}

const INDEX = /^application\/vnd\.(oci\.image\.index\.v1|docker\.distribution\.manifest\.list\.v2)\+json$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const OCI = "application/vnd.oci.image";
/** Indexes contain manifests, and no further level is in use. */
const NESTING_MAX = 3;

/** Lists the images of an OCI layout, or of what `docker save` writes. */
export async function listImages(archive: ArchiveFile): Promise<readonly ArchiveEntry[]> {
  if (archive.part("index.json") !== undefined) return listLayout(archive);
  if (archive.part("manifest.json") !== undefined) return listDocker(archive);
  throw new CliError(
    "REFUSED",
    `${archive.path} is no archive of images: it has neither index.json nor manifest.json`,
  );
}

async function listLayout(archive: ArchiveFile): Promise<readonly ArchiveEntry[]> {
  const { manifests } = await json<{ manifests?: readonly Descriptor[] }>(archive, "index.json");
  // The same image may be listed once for each of its names.
  const byDigest = Map.groupBy(manifests ?? [], ({ digest }) => String(digest));
  return [...byDigest.values()].map((descriptors) => {
    const [descriptor = {}] = descriptors;
    return {
      names: [...new Set(descriptors.flatMap(namesOf))],
      severalPlatforms: INDEX.test(String(descriptor.mediaType)),
      read: (architecture) => readImage(archive, descriptor, architecture, NESTING_MAX),
    };
  });
}

function namesOf({ annotations = {} }: Descriptor): readonly string[] {
  const name = annotations["io.containerd.image.name"] ?? annotations["org.opencontainers.image.ref.name"];
  // A tag alone names no image.
  return typeof name === "string" && /[:/]/.test(name) ? [name] : [];
}

async function readImage(
  archive: ArchiveFile,
  descriptor: Descriptor,
  architecture: string,
  depth: number,
): Promise<ArchiveImage> {
  const manifest = await blob(archive, descriptor);
  const content = parse<{
    manifests?: readonly Descriptor[];
    config?: Descriptor;
    layers?: readonly Descriptor[];
  }>(manifest, `${archive.path}: ${String(descriptor.digest)}`);
  if (content.manifests !== undefined && depth > 0) {
    const chosen = content.manifests.find(
      ({ platform }) => platform?.os === "linux" && platform.architecture === architecture,
    );
    if (chosen !== undefined) return readImage(archive, chosen, architecture, depth - 1);
    throw new CliError("REFUSED", `${archive.path}: the image is not for linux/${architecture}`);
  }
  const layers = (content.layers ?? []).map(
    ({ digest }) => [String(digest), partOf(archive, digest)] as const,
  );
  return { manifest, config: await blob(archive, content.config ?? {}), layers: new Map(layers) };
}

/** Docker's own form has no manifest: it is made from the configuration, which has the digests of the plain layers. */
async function listDocker(archive: ArchiveFile): Promise<readonly ArchiveEntry[]> {
  const entries = await json<readonly DockerEntry[]>(archive, "manifest.json");
  if (!Array.isArray(entries)) throw new CliError("REFUSED", `${archive.path}: manifest.json is no list`);
  return entries.map((entry: DockerEntry) => ({
    names: Array.isArray(entry.RepoTags) ? entry.RepoTags.map(String) : [],
    severalPlatforms: false,
    read: () => readDocker(archive, entry),
  }));
}

async function readDocker(archive: ArchiveFile, { Config, Layers }: DockerEntry): Promise<ArchiveImage> {
  const config = await archive.document(String(Config));
  const { rootfs } = parse<{ rootfs?: { diff_ids?: readonly unknown[] } }>(
    config,
    `${archive.path}: ${String(Config)}`,
  );
  const digests = (rootfs?.diff_ids ?? []).map(String);
  const paths = Array.isArray(Layers) ? Layers.map(String) : [];
  if (paths.length !== digests.length || !digests.every((digest) => DIGEST.test(digest)))
    throw new CliError(
      "REFUSED",
      `${archive.path}: the layers of ${String(Config)} are not those of manifest.json`,
    );
  const layers = digests.map((digest, index) => {
    const part = archive.part(paths[index] ?? "");
    if (part === undefined) throw missing(archive, paths[index] ?? "");
    return [digest, part] as const;
  });
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: { mediaType: `${OCI}.config.v1+json`, digest: digestOf(config), size: config.length },
    layers: layers.map(([digest, { sizeBytes }]) => {
      return { mediaType: `${OCI}.layer.v1.tar`, digest, size: sizeBytes };
    }),
  });
  return { manifest: Buffer.from(manifest), config, layers: new Map(layers) };
}

async function blob(archive: ArchiveFile, { digest }: Descriptor): Promise<Buffer> {
  partOf(archive, digest);
  const content = await archive.document(pathOf(digest));
  if (digestOf(content) === digest) return content;
  throw new CliError("REFUSED", `${archive.path}: ${pathOf(digest)} is damaged: it has another digest`);
}

function partOf(archive: ArchiveFile, digest: unknown): ArchivePart {
  const part = archive.part(pathOf(digest));
  if (part === undefined) throw missing(archive, pathOf(digest));
  return part;
}

function pathOf(digest: unknown): string {
  if (typeof digest !== "string" || !DIGEST.test(digest))
    throw new CliError("REFUSED", `the archive names ${JSON.stringify(digest)}, which is no SHA-256 digest`);
  return `blobs/${digest.replace(":", "/")}`;
}

function missing({ path }: ArchiveFile, file: string): CliError {
  return new CliError(
    "REFUSED",
    `${path}: the archive is incomplete, it has no ${file}: save the image again`,
  );
}

async function json<T>(archive: ArchiveFile, path: string): Promise<T> {
  return parse<T>(await archive.document(path), `${archive.path}: ${path}`);
}

function parse<T>(content: Buffer, what: string): T {
  try {
    const value: unknown = JSON.parse(content.toString());
    if (typeof value === "object" && value !== null) return value as T;
  } catch {
    // Reported below.
  }
  throw new CliError("REFUSED", `${what} is no JSON document`);
}

export function digestOf(content: Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
