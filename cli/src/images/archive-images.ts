import { createHash } from "node:crypto";
import { CliError } from "../errors.ts";
import type { ArchiveFile, ArchivePart } from "./archive-file.ts";

/** An image of an archive, for one platform. */
export interface ArchiveImage {
  /** The indexes that lead to the manifest, outermost first. */
  readonly indexes: readonly Buffer[];
  readonly manifest: Buffer;
  readonly config: Buffer;
  /** The layers by digest. */
  readonly layers: ReadonlyMap<string, ArchivePart>;
}

/** An image of an archive, possibly for several platforms. */
export interface ArchiveEntry {
  /** The names of the image; empty if it has none. */
  readonly names: readonly string[];
  /** The digest of the manifest or index; undefined in Docker's own format, which has none. */
  readonly digest: string | undefined;
  /** Whether the image has several platforms from which `read` chooses. */
  readonly severalPlatforms: boolean;
  /**
   * Returns the architectures for which manifest, configuration and layers are all in the archive.
   */
  architectures(): Promise<readonly string[]>;
  /** Reads the image for an architecture such as `amd64`. Throws if the archive has none for it. */
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
/** The deepest nesting of indexes. */
const NESTING_MAX = 3;

/** Lists the images of an OCI layout, or of an archive made by `docker save`. */
export async function listImages(archive: ArchiveFile): Promise<readonly ArchiveEntry[]> {
  if (archive.part("index.json") !== undefined) return listLayout(archive);
  if (archive.part("manifest.json") !== undefined) return listDocker(archive);
  throw new CliError(
    "REFUSED",
    `${archive.path} is not an archive of images: it has neither index.json nor manifest.json`,
  );
}

async function listLayout(archive: ArchiveFile): Promise<readonly ArchiveEntry[]> {
  const { manifests } = await json<{ manifests?: readonly Descriptor[] }>(archive, "index.json");
  // An image may be listed once for each of its names.
  const byDigest = Map.groupBy(manifests ?? [], ({ digest }) => String(digest));
  return [...byDigest.values()].map((descriptors) => {
    const [descriptor = {}] = descriptors;
    return {
      names: [...new Set(descriptors.flatMap(namesOf))],
      digest: String(descriptor.digest),
      severalPlatforms: INDEX.test(String(descriptor.mediaType)),
      architectures: async () => [...new Set(await listComplete(archive, descriptor, NESTING_MAX))],
      read: (architecture) => readImage(archive, descriptor, architecture, []),
    };
  });
}

function namesOf({ annotations = {} }: Descriptor): readonly string[] {
  const name = annotations["io.containerd.image.name"] ?? annotations["org.opencontainers.image.ref.name"];
  // A tag alone does not name an image.
  return typeof name === "string" && /[:/]/.test(name) ? [name] : [];
}

async function readImage(
  archive: ArchiveFile,
  descriptor: Descriptor,
  architecture: string,
  indexes: readonly Buffer[],
): Promise<ArchiveImage> {
  const manifest = await blob(archive, descriptor);
  const content = parseContent(archive, descriptor, manifest);
  if (content.manifests !== undefined && indexes.length < NESTING_MAX) {
    const chosen = content.manifests.find(
      ({ platform }) => platform?.os === "linux" && platform.architecture === architecture,
    );
    if (chosen !== undefined) return readImage(archive, chosen, architecture, [...indexes, manifest]);
    throw new CliError("REFUSED", `${archive.path}: the image is not for linux/${architecture}`);
  }
  const layers = (content.layers ?? []).map(
    ({ digest }) => [String(digest), partOf(archive, digest)] as const,
  );
  const config = await blob(archive, content.config ?? {});
  return { indexes, manifest, config, layers: new Map(layers) };
}

/**
 * Lists the architectures for which the image is complete. Indexes saved by `docker save` and
 * `nerdctl save` name further architectures.
 */
async function listComplete(
  archive: ArchiveFile,
  descriptor: Descriptor,
  depth: number,
): Promise<readonly string[]> {
  if (archive.part(pathOf(descriptor.digest)) === undefined) return [];
  const { manifests, config, layers } = parseContent(archive, descriptor, await blob(archive, descriptor));
  if (manifests !== undefined) {
    const found: string[] = [];
    for (const each of depth > 0 ? manifests : [])
      if (each.platform?.os === "linux" && (await listComplete(archive, each, depth - 1)).length > 0)
        found.push(String(each.platform.architecture));
    return found;
  }
  const parts = [config, ...(layers ?? [])].map((each) => archive.part(pathOf(each?.digest)));
  if (parts.includes(undefined)) return [];
  return [architectureOf(archive, await blob(archive, config ?? {}))];
}

function architectureOf({ path }: ArchiveFile, config: Buffer): string {
  const { architecture } = parse<{ architecture?: unknown }>(
    config,
    `${path}: the configuration of an image`,
  );
  return String(architecture);
}

interface Content {
  readonly manifests?: readonly Descriptor[];
  readonly config?: Descriptor;
  readonly layers?: readonly Descriptor[];
}

/** Parses a manifest or an index. */
function parseContent({ path }: ArchiveFile, { digest }: Descriptor, content: Buffer): Content {
  return parse<Content>(content, `${path}: ${String(digest)}`);
}

/**
 * Docker's own format has no manifest. It is built from the configuration, which contains the
 * digests of the uncompressed layers.
 */
async function listDocker(archive: ArchiveFile): Promise<readonly ArchiveEntry[]> {
  const entries = await json<readonly DockerEntry[]>(archive, "manifest.json");
  if (!Array.isArray(entries)) throw new CliError("REFUSED", `${archive.path}: manifest.json is not a list`);
  return entries.map((entry: DockerEntry) => ({
    names: Array.isArray(entry.RepoTags) ? entry.RepoTags.map(String) : [],
    digest: undefined,
    severalPlatforms: false,
    architectures: async () => [architectureOf(archive, (await readDocker(archive, entry)).config)],
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
  return { indexes: [], manifest: Buffer.from(manifest), config, layers: new Map(layers) };
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
    throw new CliError(
      "REFUSED",
      `the archive names ${JSON.stringify(digest)}, which is not a SHA-256 digest`,
    );
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
  throw new CliError("REFUSED", `${what} is not a JSON document`);
}

export function digestOf(content: Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
