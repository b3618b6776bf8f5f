import { createHash } from "node:crypto";
import { messageOf } from "@forage/common/message-of";
import type {
  Archive,
  UploadRequest,
  UploadResponse,
  WorkspaceNodeServiceClient,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { status } from "@grpc/grpc-js";
import { isServiceError } from "../link/client.ts";
import { WorkspaceError } from "./workspace-error.ts";

/** Opens a channel to the coordinator with the certificate that is on disk now. */
export type ConnectContent = () => Promise<WorkspaceNodeServiceClient>;

export interface ArchiveToStore {
  readonly instanceId: string;
  readonly transferId: string;
  readonly object: string;
  /** Known if the archive lies in a file already. */
  readonly known?: { readonly sizeBytes: number; readonly sha256: string };
}

/** Well below gRPC's usual limit of 4 MiB for a message, and large enough for few messages. */
const CHUNK_BYTES_MAX = 256 * 1024;
// A stream that moves nothing for so long is broken, whatever the transport says.
const STALL_MS = 120_000;

/** Stores an archive. Resolves once the content store has it, verified. Rejects with a WorkspaceError. */
export async function uploadArchive(
  connect: ConnectContent,
  { instanceId, transferId, object, known }: ArchiveToStore,
  chunks: AsyncIterable<Buffer>,
  options: { readonly signal: AbortSignal; readonly progress: (bytesDone: number) => void },
): Promise<Archive> {
  const client = await connect().catch(toUnavailable);
  const stall = stallTimer();
  const signal = AbortSignal.any([options.signal, stall.signal]);
  const answer = openUpload(client, signal);
  try {
    const hash = createHash("sha256");
    let sizeBytes = 0;
    const start = {
      ...{ instanceId, transferId, object },
      ...{ sizeBytes: BigInt(known?.sizeBytes ?? 0), sha256: known?.sha256 ?? "" },
    };
    await answer.write({ part: { $case: "start", value: start } });
    stall.pause();
    for await (const chunk of chunks) {
      stall.moved();
      for (let from = 0; from < chunk.byteLength && !answer.settled(); from += CHUNK_BYTES_MAX) {
        const data = chunk.subarray(from, from + CHUNK_BYTES_MAX);
        hash.update(data);
        sizeBytes += data.byteLength;
        await answer.write({ part: { $case: "data", value: data } });
        stall.moved();
      }
      stall.pause();
      options.progress(sizeBytes);
      // The store has the archive already, or has failed. Either way the answer says so.
      if (answer.settled()) break;
    }
    const sha256 = hash.digest("hex");
    if (!answer.settled()) {
      const value = { sizeBytes: BigInt(sizeBytes), sha256 };
      await answer.write({ part: { $case: "end", value } });
      answer.end();
    }
    const { archive, existed } = await answer.response;
    if (archive === undefined)
      throw new WorkspaceError("UNAVAILABLE", "the content store did not say what it stored");
    const expected = known ?? { sizeBytes, sha256 };
    if (!existed) assertSame(archive, expected);
    return archive;
  } catch (error) {
    options.signal.throwIfAborted();
    if (stall.signal.aborted)
      throw new WorkspaceError("UNAVAILABLE", `the content store took nothing for ${STALL_MS / 1_000} s`);
    throw toWorkspaceError(error);
  } finally {
    stall.stop();
    answer.cancel();
    client.close();
  }
}

/**
 * Yields an archive from the content store and verifies its size and digest: throws DAMAGED after the last chunk if they differ.
 * Continues after a broken connection where it stopped.
 */
export async function* downloadArchive(
  connect: ConnectContent,
  instanceId: string,
  archive: Archive,
  options: { readonly signal: AbortSignal; readonly progress: (bytesDone: number) => void },
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  const sizeBytes = Number(archive.sizeBytes);
  let done = 0;
  // An attempt that brought something doesn't count, so only a store that gives nothing ends this.
  for (let fruitless = 0; done < sizeBytes; ) {
    const before = done;
    try {
      for await (const data of downloadFrom(
        connect,
        { instanceId, object: archive.object, offset: done },
        options,
      )) {
        hash.update(data);
        done += data.byteLength;
        if (done > sizeBytes) throw damaged(archive, `it has more than ${sizeBytes} bytes`);
        options.progress(done);
        yield data;
      }
      if (done < sizeBytes) throw damaged(archive, `it has ${done} bytes, not ${sizeBytes}`);
    } catch (error) {
      options.signal.throwIfAborted();
      const failure = toWorkspaceError(error);
      fruitless = done > before ? 0 : fruitless + 1;
      if (!failure.retryable || fruitless >= DOWNLOAD_TRIES_MAX) throw failure;
    }
  }
  const sha256 = hash.digest("hex");
  if (sha256 !== archive.sha256) throw damaged(archive, `its SHA-256 is ${sha256}, not ${archive.sha256}`);
}

const DOWNLOAD_TRIES_MAX = 3;

async function* downloadFrom(
  connect: ConnectContent,
  { instanceId, object, offset }: { instanceId: string; object: string; offset: number },
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  signal.throwIfAborted();
  const client = await connect().catch(toUnavailable);
  const stall = stallTimer();
  const call = client.download({ instanceId, object, offsetBytes: BigInt(offset) });
  const cancel = () => call.cancel();
  const either = AbortSignal.any([signal, stall.signal]);
  either.addEventListener("abort", cancel, { once: true });
  try {
    for await (const { data } of call as AsyncIterable<{ data: Uint8Array }>) {
      stall.pause();
      yield data;
      stall.moved();
    }
  } finally {
    stall.stop();
    either.removeEventListener("abort", cancel);
    call.on("error", () => undefined);
    call.cancel();
    client.close();
  }
}

interface OpenUpload {
  write(request: UploadRequest): Promise<void>;
  end(): void;
  /** Whether the answer or an error has come. */
  settled(): boolean;
  readonly response: Promise<UploadResponse>;
  cancel(): void;
}

function openUpload(client: WorkspaceNodeServiceClient, signal: AbortSignal): OpenUpload {
  let settled = false;
  let wake = (): void => undefined;
  let call: ReturnType<WorkspaceNodeServiceClient["upload"]> | undefined;
  const response = new Promise<UploadResponse>((resolve, reject) => {
    call = client.upload((error, answer) => {
      settled = true;
      wake();
      if (error === null) resolve(answer);
      else reject(error);
    });
  });
  response.catch(() => undefined);
  call?.on("error", () => undefined);
  call?.on("drain", () => wake());
  const cancel = () => call?.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();
  return {
    response,
    settled: () => settled,
    end: () => call?.end(),
    cancel: () => {
      signal.removeEventListener("abort", cancel);
      if (!settled) cancel();
    },
    write: async (request) => {
      if (settled || call === undefined || call.write(request)) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (settled) resolve();
      });
    },
  };
}

/** Aborts its signal when nothing has moved for a while. */
function stallTimer(): { readonly signal: AbortSignal; moved(): void; pause(): void; stop(): void } {
  const abort = new AbortController();
  const begin = () => setTimeout(() => abort.abort(), STALL_MS).unref();
  let timer = begin();
  const pause = () => clearTimeout(timer);
  return {
    signal: abort.signal,
    moved: () => {
      pause();
      timer = begin();
    },
    pause,
    stop: pause,
  };
}

function assertSame(stored: Archive, made: { readonly sizeBytes: number; readonly sha256: string }): void {
  if (Number(stored.sizeBytes) === made.sizeBytes && stored.sha256 === made.sha256) return;
  throw new WorkspaceError(
    "UNAVAILABLE",
    `the content store has ${stored.sizeBytes} bytes with SHA-256 ${stored.sha256} as ${stored.object}, ` +
      `but ${made.sizeBytes} bytes with ${made.sha256} were sent`,
  );
}

function damaged({ object }: Archive, why: string): WorkspaceError {
  return new WorkspaceError("DAMAGED", `archive ${object} is damaged: ${why}`);
}

function toUnavailable(error: unknown): never {
  const message = messageOf(error);
  throw new WorkspaceError("UNAVAILABLE", `the coordinator can't be reached: ${message}`, { cause: error });
}

function toWorkspaceError(error: unknown): WorkspaceError {
  if (!isServiceError(error)) return WorkspaceError.from(error);
  const message = `content store: ${error.details}`;
  if (error.code === status.DATA_LOSS) return new WorkspaceError("DAMAGED", message, { cause: error });
  return new WorkspaceError("UNAVAILABLE", message, { cause: error });
}
