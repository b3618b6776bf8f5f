import { CliError } from "../errors.ts";
import type { ArchiveFile } from "../images/archive-file.ts";
import { type ArchiveEntry, type ArchiveImage, digestOf } from "../images/archive-images.ts";
import { digestIn } from "../images/image-name.ts";

/** An entry of an archive that may be the image to find. */
export interface Candidate {
  readonly archive: ArchiveFile;
  readonly entry: ArchiveEntry;
}

/** A chosen image with its parts. */
export interface ChosenImage {
  readonly name: string;
  /** The manifest or index to which the name refers. */
  readonly top: Buffer;
  readonly topType: string;
  /** The image for each architecture. */
  readonly platforms: ReadonlyMap<string, Candidate & { readonly image: ArchiveImage }>;
}

const OCI = "application/vnd.oci.image";

/**
 * Chooses the platforms of an image from all archives that have it; the first archive has
 * precedence. Without `requested`, all complete platforms are chosen. Throws REFUSED if a platform is
 * missing, or if the digest differs from that in the name.
 */
export async function chooseImage(
  name: string,
  candidates: readonly Candidate[],
  requested: readonly string[],
): Promise<ChosenImage> {
  const platforms = new Map<string, Candidate & { readonly image: ArchiveImage }>();
  for (const candidate of candidates)
    for (const architecture of await candidate.entry.architectures())
      if (!platforms.has(architecture) && (requested.length === 0 || requested.includes(architecture)))
        platforms.set(architecture, { ...candidate, image: await candidate.entry.read(architecture) });
  const missing = requested.filter((architecture) => !platforms.has(architecture));
  if (missing.length > 0 || platforms.size === 0)
    throw new CliError(
      "REFUSED",
      `${name} is not complete for ${missing.length > 0 ? missing.map((each) => `linux/${each}`).join(", ") : "any platform"}: save it for that platform and name the archive with --archive`,
    );
  const chosen = { name, ...topOf(platforms), platforms };
  assertDigest(chosen);
  return chosen;
}

/**
 * Returns the archive's own index if all platforms are from one archive, because names with a
 * digest refer to it.
 */
function topOf(platforms: ChosenImage["platforms"]): Pick<ChosenImage, "top" | "topType"> {
  const [first, ...others] = platforms.values();
  if (first !== undefined && others.every(({ entry }) => entry === first.entry)) {
    const { indexes, manifest } = first.image;
    const top = indexes[0] ?? manifest;
    return { top, topType: typeOf(top, indexes.length > 0 ? "index" : "manifest") };
  }
  const topType = `${OCI}.index.v1+json`;
  const manifests = [...platforms].map(
    ([
      architecture,
      {
        image: { manifest },
      },
    ]) => {
      const described = { mediaType: typeOf(manifest, "manifest"), digest: digestOf(manifest) };
      return { ...described, size: manifest.length, platform: { os: "linux", architecture } };
    },
  );
  return { top: Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: topType, manifests })), topType };
}

function typeOf(document: Buffer, kind: "index" | "manifest"): string {
  const { mediaType } = JSON.parse(document.toString()) as { readonly mediaType?: unknown };
  return typeof mediaType === "string" ? mediaType : `${OCI}.${kind}.v1+json`;
}

/** Throws unless the digest in a name is that of the manifest or index. */
function assertDigest({ name, top, platforms }: ChosenImage): void {
  const digest = digestIn(name);
  const [only, ...others] = platforms.values();
  if (digest === undefined || digestOf(top) === digest) return;
  if (only !== undefined && others.length === 0 && digestOf(only.image.manifest) === digest) return;
  throw new CliError(
    "REFUSED",
    `the image that was found for ${name} has the digest ${digestOf(top)}: save the one that the manifest means, or name it by its tag`,
  );
}
