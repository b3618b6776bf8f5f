import type { Coordinator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { openArchive } from "../images/open-source.ts";
import { type Manifest, readManifest } from "../manifest/bundles.ts";
import { readBundle, type SiteBundle, type StoredImage } from "../site-bundle/read-bundle.ts";
import { usedImages } from "../site-bundle/used-images.ts";
import { shortQuantity } from "../view/quantity.ts";
import { applyManifest } from "./apply.ts";
import { ALL_NAMESPACES, TARGET_FLAGS, targetsOf } from "./image.ts";
import { architectureOf, type Pushed, printPushed, pushTo, readable } from "./image-push.ts";
import { chosenNamespace } from "./namespace-choice.ts";
import { onEachNode } from "./on-each-node.ts";
import { PRUNE_FLAG, pruneOf } from "./prune.ts";

const OPERAND = { name: "FILE", required: true, help: "what bundle create wrote, or - for standard input" };

export const bundleVerify = defineCommand({
  name: "verify",
  summary: "Check a bundle and list its images",
  details: "Compares every file and layer with its digest. Needs no coordinator.",
  operands: [OPERAND],
  run: async (invocation) => {
    const context = contextOf(invocation);
    return withBundle(context, invocation.operands[0] ?? "", async ({ images, contents }) => {
      printListing(context, {
        columns: [
          { title: "IMAGE", value: ({ name }: StoredImage) => name },
          {
            title: "PLATFORMS",
            value: ({ architectures }) => architectures.map((each) => `linux/${each}`).join(","),
          },
          { title: "SIZE", value: ({ sizeBytes }) => shortQuantity(String(sizeBytes)), alignRight: true },
        ],
        rows: images,
        json: ({ name, digest, architectures, sizeBytes }) => ({ name, digest, architectures, sizeBytes }),
        name: ({ name }) => name,
        none: "the bundle holds no images",
      });
      for (const { path } of contents.files) context.world.stderr.write(`also in the bundle: ${path}\n`);
      return EXIT.ok;
    });
  },
});

export const bundleLoad = defineCommand({
  name: "load",
  summary: "Set a site up from a bundle: send its images to nodes and apply its manifests",
  details: `Checks every digest before anything is sent. --node or --all sends the images, only the layers that a node lacks, as image push does;
--apply then applies the manifests, and asks first what an apply asks. Each image is sent for the namespaces whose manifests use it, and other images for the
namespace of -n. A load that ended early can be repeated. Packages are taken out by tar: tar -xf FILE packages`,
  operands: [OPERAND],
  flags: {
    ...TARGET_FLAGS,
    ...ALL_NAMESPACES,
    apply: { type: "switch", help: "apply the manifests, and follow the rollout until it has ended" },
    detach: { type: "switch", help: "with --apply: don't follow the rollout, print its id" },
    prune: PRUNE_FLAG,
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const sends = flags.all || flags.node.length > 0;
    if (!sends && !flags.apply)
      throw new CliError("USAGE", "choose nodes for the images with --node or --all, or --apply, or both");
    const namespace = chosenNamespace(flags, context.settings);
    const options = { detach: flags.detach, strict: false, prune: pruneOf(flags.prune) };
    return withBundle(context, invocation.operands[0] ?? "", async (bundle) => {
      const manifest = manifestOf(context, bundle);
      if (flags.apply && manifest === undefined)
        throw new CliError("USAGE", `${bundle.archive.path} holds no manifests: leave --apply out`);
      return withCoordinator(context, async (coordinator) => {
        if (sends) {
          const nodes = await targetsOf(coordinator, flags);
          const uses = pushesOf(bundle.images, manifest, namespace);
          const code = await sendImages({ context, coordinator, bundle, nodes, uses, quiet: flags.apply });
          if (code !== EXIT.ok || !flags.apply) return code;
        }
        return manifest === undefined ? EXIT.ok : applyManifest(context, coordinator, manifest, options);
      });
    });
  },
});

/** An image, and a namespace whose pods may use it. An empty namespace means all. */
interface ImagePush {
  readonly image: StoredImage;
  readonly namespace: string;
}

/** Returns the images to send to each node, with their namespaces. */
export function pushesOf(
  images: readonly StoredImage[],
  manifest: Manifest | undefined,
  namespace: string,
): readonly ImagePush[] {
  const used = new Map(usedImages(manifest?.bundles ?? []).map(({ name, namespaces }) => [name, namespaces]));
  return images.flatMap((image) => {
    const namespaces = namespace === "" ? [""] : (used.get(image.name) ?? [namespace]);
    return namespaces.map((each) => ({ image, namespace: each }));
  });
}

async function withBundle(
  context: Context,
  path: string,
  use: (bundle: SiteBundle) => Promise<ExitCode>,
): Promise<ExitCode> {
  const source = await openArchive(path, context.world, context.signal).catch((error: unknown) => {
    throw readable(error, path);
  });
  try {
    return await use(await readBundle(source.archive));
  } finally {
    await source.close();
  }
}

function manifestOf({ settings }: Context, { archive, manifests }: SiteBundle): Manifest | undefined {
  if (manifests === undefined) return undefined;
  return readManifest([{ name: `${archive.path}: manifests.yaml`, text: manifests }], settings);
}

async function sendImages(task: {
  readonly context: Context;
  readonly coordinator: Coordinator;
  readonly bundle: SiteBundle;
  readonly nodes: readonly string[];
  readonly uses: readonly ImagePush[];
  /** Whether standard output is reserved for another result. */
  readonly quiet: boolean;
}): Promise<ExitCode> {
  const { context, coordinator, bundle, nodes, uses } = task;
  const rows: Pushed[] = [];
  try {
    return await onEachNode(context, coordinator, nodes, async (node) => {
      await assertPlatform(coordinator, node, bundle);
      for (const { image, namespace } of uses) {
        const { name, entry } = image;
        const pushed = await pushTo(
          { context, coordinator, namespace },
          node,
          { name, entry },
          bundle.archive,
        );
        context.world.stderr.write(`${node}: ${name} is on the node\n`);
        rows.push(pushed);
      }
    });
  } finally {
    if (!task.quiet) printPushed(context, rows);
  }
}

/**
 * Throws if the image has several platforms, but none for the node, before anything is sent. Nodes
 * themselves check other images.
 */
async function assertPlatform(
  coordinator: Coordinator,
  node: string,
  { images, archive }: SiteBundle,
): Promise<void> {
  const choices = images.filter(({ entry }) => entry.severalPlatforms);
  if (choices.length === 0) return;
  const architecture = await architectureOf(coordinator, node);
  const lacking = choices.find(({ architectures }) => !architectures.includes(architecture));
  if (lacking === undefined) return;
  const platforms = lacking.architectures.map((each) => `linux/${each}`).join(", ");
  throw new CliError(
    "REFUSED",
    `node ${node} is linux/${architecture}; ${archive.path} has ${lacking.name} for ${platforms} only: create it with --platform linux/${architecture}`,
  );
}
