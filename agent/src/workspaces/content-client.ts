import { createHash } from "node:crypto";
import { readBytesField } from "@forage/common/bytes-field";
import { messageOf } from "@forage/common/message-of";
import {
  type Archive,
  type DownloadRequest,
  DownloadResponse,
  type WorkspaceNodeServiceClient,
  WorkspaceNodeServiceService,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { type ClientReadableStream, status } from "@grpc/grpc-js";
import { isServiceError } from "../link/client.ts";
import { type OpenUpload, type UploadCall, UploadStream } from "./upload-stream.ts";
import { WorkspaceError } from "./workspace-error.ts";

/** Opens a channel to the coordinator with the certificate currently on disk. */
export type ConnectContent = () => Promise<WorkspaceNodeServiceClient>;

export interface ArchiveToStore {
  readonly instanceId: string;
  readonly transferId: string;
  readonly object: string;
  /**
   * Set if the archive is already in a file. Its digest is then not computed again, because the content store verifies
   * it.
   */
  readonly known?: { readonly sizeBytes: number; readonly sha256: string };
}

// A stream without progress for this long is broken, whatever the transport reports.
const STALL_MS = 120_000;

/**
 * Uploads an archive. Resolves once the content store has verified it. Rejects with a WorkspaceError. A chunk's memory
 * may be reused for the next chunk.
 */
export async function uploadArchive(
  connect: ConnectContent,
  { instanceId, transferId, object, known }: ArchiveToStore,
  chunks: AsyncIterable<Buffer>,
  options: { readonly signal: AbortSignal; readonly progress: (bytesDone: number) => void },
): Promise<Archive> {
  const client = await connect().catch(toUnavailable);
  const stall = stallTimer();
  const upload = new UploadStream(
    (answered) => openUpload(client, answered),
    AbortSignal.any([options.signal, stall.signal]),
  );
  try {
    const hash = known === undefined ? createHash("sha256") : undefined;
    let sizeBytes = 0;
    const start = {
      ...{ instanceId, transferId, object },
      ...{ sizeBytes: BigInt(known?.sizeBytes ?? 0), sha256: known?.sha256 ?? "" },
    };
    upload.send({ part: { $case: "start", value: start } });
    stall.pause();
    for await (const chunk of chunks) {
      stall.moved();
      hash?.update(chunk);
      await upload.data(chunk);
      sizeBytes += chunk.byteLength;
      stall.pause();
      options.progress(sizeBytes);
      // The store already has the archive, or has failed. The response contains the result.
      if (upload.settled) break;
    }
    const sent = known ?? { sizeBytes, sha256: hash?.digest("hex") ?? "" };
    const value = { sizeBytes: BigInt(sent.sizeBytes), sha256: sent.sha256 };
    upload.end({ part: { $case: "end", value } });
    const { archive, existed } = await upload.response;
    if (archive === undefined)
      throw new WorkspaceError("UNAVAILABLE", "the content store did not report what it stored");
    if (!existed) assertSame(archive, sent);
    return archive;
  } catch (error) {
    options.signal.throwIfAborted();
    if (stall.signal.aborted)
      throw new WorkspaceError("UNAVAILABLE", `the content store accepted no data for ${STALL_MS / 1_000} s`);
    throw toWorkspaceError(error);
  } finally {
    stall.stop();
    upload.close();
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
  // An attempt that received data doesn't count, so only a store that sends nothing ends this loop.
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
/** The field number of `DownloadResponse.data`. */
const DOWNLOAD_DATA_FIELD = 1;

async function* downloadFrom(
  connect: ConnectContent,
  { instanceId, object, offset }: { instanceId: string; object: string; offset: number },
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  signal.throwIfAborted();
  const client = await connect().catch(toUnavailable);
  const stall = stallTimer();
  const call = openDownload(client, { instanceId, object, offsetBytes: BigInt(offset) });
  const cancel = () => call.cancel();
  const either = AbortSignal.any([signal, stall.signal]);
  either.addEventListener("abort", cancel, { once: true });
  try {
    for await (const data of call as AsyncIterable<Uint8Array>) {
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

/** Yields the data of the messages without copying it. */
function openDownload(
  client: WorkspaceNodeServiceClient,
  request: DownloadRequest,
): ClientReadableStream<Uint8Array> {
  const { path, requestSerialize } = WorkspaceNodeServiceService.download;
  const decode = (message: Buffer) =>
    readBytesField(message, DOWNLOAD_DATA_FIELD) ?? DownloadResponse.decode(message).data;
  return client.makeServerStreamRequest(path, requestSerialize, decode, request);
}

/** Opens an upload of messages that are already encoded. */
function openUpload(client: WorkspaceNodeServiceClient, answered: Parameters<OpenUpload>[0]): UploadCall {
  const { path, responseDeserialize } = WorkspaceNodeServiceService.upload;
  const call = client.makeClientStreamRequest(
    path,
    (message: Buffer) => message,
    responseDeserialize,
    answered,
  );
  call.on("error", () => undefined);
  return call;
}

/** Returns a signal that aborts when `moved` has not been called for a while. */
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
