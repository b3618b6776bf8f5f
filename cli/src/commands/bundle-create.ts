import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { listImages } from "../images/archive-images.ts";
import { digestIn, fullName } from "../images/image-name.ts";
import { type ImageSource, openArchive, openImage } from "../images/open-source.ts";
import { renderDocument } from "../output/document.ts";
import { plainText } from "../output/plain-text.ts";
import type { Candidate } from "../site-bundle/choose-image.ts";
import { IMAGES_MAX } from "../site-bundle/contents.ts";
import { type FoundImage, type Package, packBundle } from "../site-bundle/pack-bundle.ts";
import { usedImages } from "../site-bundle/used-images.ts";
import { writeFile } from "../site-bundle/write-file.ts";
import { shortQuantity } from "../view/quantity.ts";
import { documentOf } from "./convert.ts";
import { readable } from "./image-push.ts";
import { titleOf } from "./put-objects.ts";
import { LOSSY_FLAG, MANIFEST_FLAG, readManifests } from "./read-manifests.ts";

/**
 * The size limit of the manifests, which a reader keeps in memory. The coordinator accepts 4 MiB in
 * a request.
 */
const MANIFESTS_MAX_BYTES = 4 * 1024 * 1024;
const PACKAGES_MAX = 1_000;
/** The most archives. Each needs an open file. */
const ARCHIVES_MAX = 100;

export const bundleCreate = defineCommand({
  name: "create",
  summary: "Pack manifests and their images into one archive for a site without the internet",
  details: `FILE must not exist, is readable by its owner only, and is compressed if its name ends with .gz or .zst. It holds the manifests, every
image that they name, and packages. An image comes from the first --archive that has it, else from docker, nerdctl or podman on this
machine. Archives of the same image for several platforms are joined. FILE is also an archive that image push reads.
Secrets, config maps and other objects are not packed: create them at the site.`,
  operands: [{ name: "FILE", required: true, help: "where to write it, such as site.tar.zst" }],
  flags: {
    file: MANIFEST_FLAG,
    lossy: LOSSY_FLAG,
    image: { type: "list", hint: "IMAGE", help: "a further image; may be repeated" },
    archive: {
      type: "list",
      hint: "ARCHIVE",
      help: "what docker, nerdctl or podman saved, or an OCI layout in a tar file; may be repeated",
    },
    platform: {
      type: "list",
      hint: "linux/ARCH",
      help: "a platform that each image must be complete for, such as linux/arm64; by default those that are there",
    },
    packages: {
      type: "list",
      hint: "DIR",
      help: "a directory with Debian packages to take along; may be repeated",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const [operand = ""] = invocation.operands;
    const path = resolve(operand);
    const architectures = flags.platform.map(architectureIn);
    const { images, manifests } = await readInput(context, flags);
    const packages = await listPackages(flags.packages);
    if (images.size > IMAGES_MAX) throw new CliError("USAGE", `a bundle holds up to ${IMAGES_MAX} images`);
    if (flags.archive.length > ARCHIVES_MAX)
      throw new CliError(
        "USAGE",
        `--archive is limited to ${ARCHIVES_MAX} archives: save several images into one`,
      );
    const archives = await openArchives(context, flags.archive);
    try {
      const chunks = packBundle({
        ...{ images: [...images.keys()], architectures, manifests, packages },
        find: (name) => findImage(context, archives, name, images.get(name) ?? name),
        onImage: ({ name, architectures: packed }) =>
          void context.world.stderr.write(
            `${plainText(name)}: ${packed.map((each) => `linux/${plainText(each)}`).join(", ")}\n`,
          ),
      });
      const bytes = await writeFile(path, chunks, context.signal);
      context.world.stdout.write(
        `${path}: ${images.size} images, ${packages.length} packages, ${shortQuantity(String(bytes))}\n`,
      );
      return EXIT.ok;
    } finally {
      await closeAll(archives);
    }
  },
});

interface OpenArchive {
  readonly source: ImageSource;
  readonly candidates: readonly Candidate[];
}

interface Input {
  /** The images by full name, with the names in the manifests. */
  readonly images: ReadonlyMap<string, string>;
  readonly manifests: Buffer | undefined;
}

async function readInput(
  context: Context,
  flags: { readonly file: readonly string[]; readonly lossy: boolean; readonly image: readonly string[] },
): Promise<Input> {
  const { stderr } = context.world;
  const images = new Map(flags.image.map((name) => [fullName(name), name]));
  if (flags.file.length === 0) {
    if (images.size === 0)
      throw new CliError("USAGE", "nothing to pack: name manifests with -f, or images with --image");
    return { images, manifests: undefined };
  }
  const { bundles, objects } = await readManifests(context, flags);
  for (const { object } of objects)
    stderr.write(`not in the bundle: ${plainText(titleOf(object))}; create it at the site\n`);
  for (const { name, written, needsRegistry } of usedImages(bundles)) {
    images.set(name, written);
    if (needsRegistry)
      stderr.write(
        `warning: nodes query a registry for ${plainText(name)} each time: name it by a fixed tag, without a digest and the pull policy Always\n`,
      );
  }
  const text = bundles.map((bundle) => renderDocument("yaml", documentOf(bundle))).join("---\n");
  const manifests = Buffer.from(text);
  if (manifests.length > MANIFESTS_MAX_BYTES)
    throw new CliError(
      "MANIFEST",
      `the manifests are larger than ${MANIFESTS_MAX_BYTES} bytes: make several bundles`,
    );
  return { images, manifests: bundles.length === 0 ? undefined : manifests };
}

async function openArchives(context: Context, paths: readonly string[]): Promise<readonly OpenArchive[]> {
  const opened: OpenArchive[] = [];
  for (const path of paths) {
    try {
      const source = await openArchive(path, context.world, context.signal);
      const candidates: Candidate[] = [];
      opened.push({ source, candidates });
      for (const entry of await listImages(source.archive))
        candidates.push({ archive: source.archive, entry });
    } catch (error) {
      await closeAll(opened);
      throw readable(error, path);
    }
  }
  return opened;
}

async function closeAll(archives: readonly OpenArchive[]): Promise<void> {
  for (const { source } of archives) await source.close();
}

/** Returns the archives' entries of this image, or else the image on this machine. */
async function findImage(
  { world, signal }: Context,
  archives: readonly OpenArchive[],
  name: string,
  written: string,
): Promise<FoundImage> {
  const candidates = archives.flatMap((each) => each.candidates).filter((each) => isImage(each, name));
  if (candidates.length > 0) return { candidates, close: async () => undefined };
  const source = await openImage(written, world.env, signal);
  try {
    const entries = await listImages(source.archive);
    const all = entries.map((entry) => ({ archive: source.archive, entry }));
    // An archive with a single image is used even if the program gave the image another name.
    const found = all.length === 1 ? all : all.filter((each) => isImage(each, name));
    return { candidates: found, close: () => source.close() };
  } catch (error) {
    await source.close();
    throw error;
  }
}

function isImage({ entry: { names, digest } }: Candidate, name: string): boolean {
  const requested = digestIn(name);
  return (
    (requested !== undefined && requested === digest) || names.some((each) => tryFullName(each) === name)
  );
}

function tryFullName(name: string): string | undefined {
  try {
    return fullName(name);
  } catch {
    return undefined;
  }
}

function architectureIn(platform: string): string {
  const architecture = /^linux\/([a-z0-9_]+)$/.exec(platform)?.[1];
  if (architecture !== undefined) return architecture;
  throw new CliError("USAGE", `--platform: "${platform}" is not a platform such as linux/amd64`);
}

async function listPackages(dirs: readonly string[]): Promise<readonly Package[]> {
  const packages = new Map<string, Package>();
  for (const dir of dirs) {
    const names = await readdir(dir).catch((cause: unknown) => {
      throw readable(cause, dir);
    });
    const found = names.filter((name) => name.endsWith(".deb")).sort();
    if (found.length === 0) throw new CliError("USAGE", `${dir} has no packages (.deb)`);
    if (packages.size + found.length > PACKAGES_MAX)
      throw new CliError("USAGE", `${dir}: a bundle holds up to ${PACKAGES_MAX} packages`);
    for (const name of found) {
      if (packages.has(name)) throw new CliError("USAGE", `${dir}: another directory has ${name} too`);
      const path = join(dir, name);
      packages.set(name, { name, path, sizeBytes: (await stat(path)).size });
    }
  }
  return [...packages.values()];
}
