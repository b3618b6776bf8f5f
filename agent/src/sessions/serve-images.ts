import { once } from "node:events";
import { PassThrough } from "node:stream";
import type {
  ImagePullOptions,
  ImagePushOptions,
  ImageReadOptions,
  ImageRemoveOptions,
  SessionEnd,
} from "@forage/proto/forage/agent/v1/agent";
import type { ImagePushes } from "../images/image-push.ts";
import type { ImageReads } from "../images/image-reads.ts";
import { ENDED_WELL, type Session } from "./session.ts";

/** A session that concerns no pod. */
export type HostSession = Pick<Session, "writer" | "readInput" | "signal">;

/** Pulls an image, and reports each change of its progress. */
export type PullImage = (
  options: ImagePullOptions,
  onProgress: (text: string) => void,
  signal: AbortSignal,
) => Promise<void>;

export async function serveImagePush(
  { writer, readInput, signal }: HostSession,
  options: ImagePushOptions,
  images: Pick<ImagePushes, "push">,
): Promise<SessionEnd> {
  const input = new PassThrough();
  // The reader of the input gets the error too, if there is one.
  input.on("error", () => undefined);
  const leave = (): void => void input.destroy(new Error("the client has disconnected"));
  signal.addEventListener("abort", leave, { once: true });
  readInput({
    data: async (data) => {
      if (!input.write(data)) await once(input, "drain", { signal });
    },
    closed: () => void input.end(),
  });
  const ask = (digests: readonly string[]): Promise<void> =>
    writer.send({ $case: "imageMissing", value: { digests: [...digests] } });
  try {
    await images.push(options, input, ask, signal);
  } finally {
    signal.removeEventListener("abort", leave);
    input.destroy();
  }
  return ENDED_WELL;
}

export async function serveImagePull(
  { writer, readInput, signal }: HostSession,
  options: ImagePullOptions,
  pull: PullImage,
): Promise<SessionEnd> {
  readInput({});
  let newest: string | undefined;
  let writing = false;
  // A slow reader gets only the newest progress, and the pull doesn't wait for it.
  const write = async (text: string): Promise<void> => {
    newest = text;
    if (writing) return;
    writing = true;
    while (newest !== undefined) {
      const line = newest;
      newest = undefined;
      await writer.data("stdout", Buffer.from(`${line}\n`));
    }
    writing = false;
  };
  await pull(options, (text) => void write(text), signal);
  return ENDED_WELL;
}

/** Sends an image to another node, through the coordinator. */
export async function serveImageRead(
  { writer, readInput, signal }: HostSession,
  options: ImageReadOptions,
  images: Pick<ImageReads, "send">,
): Promise<SessionEnd> {
  const { promise: missing, resolve, reject } = Promise.withResolvers<readonly string[]>();
  // The reader may have failed before.
  missing.catch(() => undefined);
  const leave = (): void => reject(new Error("the client has disconnected"));
  signal.addEventListener("abort", leave, { once: true });
  readInput({ missing: resolve, closed: leave });
  try {
    await images.send(
      options,
      {
        describe: async (manifest, config, indexes) => {
          const value = {
            ...{ manifest: Buffer.from(manifest), config: Buffer.from(config) },
            indexes: indexes.map((it) => Buffer.from(it)),
          };
          await writer.send({ $case: "imageDescription", value });
          return missing;
        },
        data: (chunk) => writer.data("stdout", chunk),
      },
      signal,
    );
  } finally {
    signal.removeEventListener("abort", leave);
  }
  return ENDED_WELL;
}

/** Removes an image. The exit code is 1 if there was no such image. */
export async function serveImageRemove(
  { readInput, signal }: HostSession,
  { image, namespace }: ImageRemoveOptions,
  images: Pick<ImagePushes, "remove">,
): Promise<SessionEnd> {
  readInput({});
  const outcome = await images.remove(image, namespace, signal);
  return { exitCode: outcome === "absent" ? 1 : 0, error: "" };
}
