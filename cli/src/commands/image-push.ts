import { ArchiveError } from "@forage/archive";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { type Context, printListing } from "../context.ts";
import { CliError } from "../errors.ts";
import type { ExitCode } from "../exit-code.ts";
import type { ArchiveFile } from "../images/archive-file.ts";
import { type ArchiveEntry, listImages } from "../images/archive-images.ts";
import { openSource } from "../images/open-source.ts";
import { pushImage } from "../images/push-image.ts";
import { shortQuantity } from "../view/quantity.ts";
import { findNode } from "./find.ts";
import { onEachNode } from "./on-each-node.ts";

export interface PushTask {
  readonly context: Context;
  readonly coordinator: Coordinator;
  /** The path of an archive, `-`, or the name of an image. */
  readonly operand: string;
  readonly nodes: readonly string[];
  /** The namespace; empty means all. */
  readonly namespace: string;
  /** The name on the nodes; undefined means the image's own name. */
  readonly name: string | undefined;
}

/** An image of the archive with one of its names. */
export interface NamedImage {
  readonly name: string;
  readonly entry: ArchiveEntry;
}

export interface Pushed {
  readonly node: string;
  readonly image: string;
  readonly layers: number;
  readonly sentBytes: number;
  readonly sizeBytes: number;
}

const PROGRESS_MS = 2_000;

/** Sends all images of an archive to the nodes, and prints the result. */
export async function push(task: PushTask): Promise<ExitCode> {
  const { context, coordinator, operand, nodes, name } = task;
  const source = await openSource(operand, context.world, context.signal).catch((error: unknown) => {
    throw readable(error, operand);
  });
  try {
    const images = nameImages(await listImages(source.archive), name ?? source.image, operand);
    const rows: Pushed[] = [];
    try {
      return await onEachNode(context, coordinator, nodes, async (node) => {
        for (const image of images) rows.push(await pushTo(task, node, image, source.archive));
      });
    } finally {
      printPushed(context, rows);
    }
  } finally {
    await source.close();
  }
}

/** Returns each image with each name under which it is pushed. */
export function nameImages(
  entries: readonly ArchiveEntry[],
  given: string | undefined,
  operand: string,
): readonly NamedImage[] {
  const [first, ...others] = entries;
  if (first === undefined) throw new CliError("REFUSED", `${operand}: the archive has no images`);
  if (given !== undefined) {
    if (others.length === 0) return [{ name: given, entry: first }];
    throw new CliError("USAGE", `${operand} has ${entries.length} images: --name is for archives with one`);
  }
  return entries.flatMap((entry) => {
    if (entry.names.length === 0)
      throw new CliError("USAGE", `${operand} has an image without a name: choose one with --name`);
    return entry.names.map((name) => ({ name, entry }));
  });
}

/** Sends one image to a node. */
export async function pushTo(
  { context, coordinator, namespace }: Pick<PushTask, "context" | "coordinator" | "namespace">,
  node: string,
  { name, entry }: NamedImage,
  archive: ArchiveFile,
): Promise<Pushed> {
  const { world, signal } = context;
  const image = await entry.read(entry.severalPlatforms ? await architectureOf(coordinator, node) : "");
  let reportedMs = world.nowMs();
  const sentBytes = await pushImage(await coordinator.duplex(operator.pushImage), {
    start: { node, image: name, namespace },
    ...{ archive, image, signal },
    onProgress: (sent, total) => {
      if (world.nowMs() - reportedMs < PROGRESS_MS) return;
      reportedMs = world.nowMs();
      world.stderr.write(`${node}: ${name}: ${bytes(sent)} of ${bytes(total)}\n`);
    },
  });
  const sizeBytes = [...image.layers.values()].reduce((sum, part) => sum + part.sizeBytes, 0);
  return { node, image: name, layers: image.layers.size, sentBytes, sizeBytes };
}

export async function architectureOf(coordinator: Coordinator, node: string): Promise<string> {
  return (await findNode(coordinator, node)).report?.architecture ?? "";
}

export function printPushed(context: Context, rows: readonly Pushed[]): void {
  if (rows.length === 0) return;
  printListing(context, {
    columns: [
      { title: "NODE", value: ({ node }: Pushed) => node },
      { title: "IMAGE", value: ({ image }) => image },
      { title: "LAYERS", value: ({ layers }) => String(layers), alignRight: true },
      { title: "SENT", value: ({ sentBytes }) => bytes(sentBytes), alignRight: true },
      { title: "SIZE", value: ({ sizeBytes }) => bytes(sizeBytes), alignRight: true },
    ],
    rows,
    json: (row) => row,
    name: ({ image }) => image,
    none: "",
  });
}

function bytes(count: number): string {
  return shortQuantity(String(count));
}

/** Converts an error of an unreadable archive to a CliError with the reason. */
export function readable(error: unknown, operand: string): unknown {
  if (error instanceof ArchiveError)
    return new CliError("REFUSED", `${operand} is not a tar archive, or it is incomplete: ${error.message}`, {
      cause: error,
    });
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code?.startsWith("Z_") === true || code?.startsWith("ZSTD_") === true)
    return new CliError("REFUSED", `${operand} can't be unpacked, it is damaged or incomplete`, {
      cause: error,
    });
  if (code === undefined || syscall === undefined) return error;
  return new CliError("REFUSED", `${operand} can't be read: ${code}`, { cause: error });
}
