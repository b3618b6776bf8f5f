import { createHash } from "node:crypto";
import type {
  PushImageRequest,
  PushImageResponse,
  PushImageStart,
} from "@forage/proto/forage/operator/v1/operator";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { CliError } from "../errors.ts";
import type { ArchiveFile } from "./archive-file.ts";
import type { ArchiveImage } from "./archive-images.ts";

export type PushCall = ClientDuplexStream<PushImageRequest, PushImageResponse>;

export interface PushOptions {
  readonly start: Omit<PushImageStart, "options"> & { readonly image: string; readonly namespace: string };
  readonly archive: ArchiveFile;
  readonly image: ArchiveImage;
  readonly signal: AbortSignal;
  readonly onProgress: (sentBytes: number, totalBytes: number) => void;
}

/** The size of one frame. The coordinator limits its buffers in frames. */
const MAX_FRAME_BYTES = 32 * 1024;

/**
 * Sends the layers that the node lacks, at the speed at which the node accepts them. Returns the
 * number of sent bytes once the node has the image.
 */
export async function pushImage(call: PushCall, options: PushOptions): Promise<number> {
  const { start, archive, image, signal, onProgress } = options;
  const { manifest, config } = image;
  const cancel = (): void => call.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  const over = new AbortController();
  // Readers of the call receive this error as well. Without a listener it would end the process.
  call.on("error", () => over.abort());
  try {
    const { node, image: name, namespace } = start;
    const sources = { indexes: [], keepPresent: false, fromNode: false };
    const described = { image: name, namespace, manifest, config, ...sources };
    call.write({ frame: { $case: "start", value: { node, options: described } } });
    const answers = call[Symbol.asyncIterator]() as AsyncIterator<PushImageResponse>;
    const first = await answers.next();
    const parts = first.done
      ? []
      : first.value.missingDigests.map((digest) => [digest, partOf(options, digest)] as const);
    const total = parts.reduce((bytes, [, { sizeBytes }]) => bytes + sizeBytes, 0);
    const answered = readToEnd(answers).finally(() => over.abort());
    // The result is awaited below, after sending has stopped.
    answered.catch(() => undefined);
    let sent = 0;
    for (const [digest, part] of parts) {
      const hash = createHash("sha256");
      for await (const chunk of archive.read(part)) {
        hash.update(chunk);
        for (let at = 0; at < chunk.length && !over.signal.aborted; at += MAX_FRAME_BYTES)
          await write(call, chunk.subarray(at, at + MAX_FRAME_BYTES), over.signal);
        if (over.signal.aborted) break;
        sent += chunk.length;
        onProgress(sent, total);
      }
      if (over.signal.aborted) break;
      if (`sha256:${hash.digest("hex")}` !== digest)
        throw new CliError("REFUSED", `${archive.path}: layer ${digest} is damaged: it has another digest`);
    }
    if (!over.signal.aborted) call.end();
    await answered;
    return sent;
  } finally {
    signal.removeEventListener("abort", cancel);
    call.cancel();
  }
}

function partOf({ image, archive }: PushOptions, digest: string) {
  const part = image.layers.get(digest);
  if (part !== undefined) return part;
  throw new CliError("REFUSED", `the node lacks layer ${digest}, which ${archive.path} doesn't have either`);
}

async function readToEnd(answers: AsyncIterator<PushImageResponse>): Promise<void> {
  while (!(await answers.next()).done);
}

async function write(call: PushCall, value: Buffer, over: AbortSignal): Promise<void> {
  if (call.write({ frame: { $case: "data", value } }) || over.aborted) return;
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      call.off("drain", finish);
      over.removeEventListener("abort", finish);
      resolve();
    };
    call.once("drain", finish);
    over.addEventListener("abort", finish, { once: true });
  });
}
