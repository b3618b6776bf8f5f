import { type ReceiveOptions, type ResolvedPath, receiveTree, sendTree } from "@forage/archive";
import type { CopyRequest, CopyResponse, CopyStart } from "@forage/proto/forage/operator/v1/operator";
import type { ClientDuplexStream } from "@grpc/grpc-js";

export type CopyCall = ClientDuplexStream<CopyRequest, CopyResponse>;

export interface CopyOptions {
  readonly start: CopyStart;
  readonly signal: AbortSignal;
  /** Called with remarks of the other side about omitted files, in whole lines. */
  readonly remark: (lines: string) => void;
}

/** The size of one frame. The coordinator limits its buffers in frames. */
const MAX_FRAME_BYTES = 32 * 1024;

/**
 * Writes files received from a container, at the speed of the disk. Throws ArchiveError, and the
 * errors of the call.
 */
export async function copyOut(
  call: CopyCall,
  options: CopyOptions,
  receive: Omit<ReceiveOptions, "links">,
): Promise<void> {
  await during(call, options, async () => {
    // The received data is no more trustworthy than the container.
    await receiveTree(dataOf(call, options), { ...receive, links: "within" });
  });
}

/**
 * Sends a file or directory into a container, at the speed at which the node reads. Resolves once
 * the node has stored everything.
 */
export async function copyInto(
  call: CopyCall,
  options: CopyOptions,
  place: ResolvedPath,
  send: { readonly name: string; readonly skipped: (path: string, why: string) => void },
): Promise<void> {
  await during(call, options, async () => {
    const over = new AbortController();
    const answered = (async () => {
      try {
        for await (const _ of dataOf(call, options));
      } finally {
        over.abort();
      }
    })();
    // The result is awaited below, after sending has stopped.
    answered.catch(() => {});
    for await (const chunk of sendTree(place, send)) {
      for (let at = 0; at < chunk.length && !over.signal.aborted; at += MAX_FRAME_BYTES)
        await write(call, { $case: "data", value: chunk.subarray(at, at + MAX_FRAME_BYTES) }, over.signal);
      if (over.signal.aborted) break;
    }
    if (!over.signal.aborted) call.write({ frame: { $case: "closed", value: true } });
    await answered;
  });
}

async function during(call: CopyCall, options: CopyOptions, run: () => Promise<void>): Promise<void> {
  const cancel = (): void => call.cancel();
  options.signal.addEventListener("abort", cancel, { once: true });
  // Readers of the call receive this error as well. Without a listener it would end the process.
  call.on("error", () => {});
  try {
    call.write({ frame: { $case: "start", value: options.start } });
    await run();
  } finally {
    options.signal.removeEventListener("abort", cancel);
    call.end();
    call.cancel();
  }
}

async function* dataOf(call: CopyCall, { remark }: CopyOptions): AsyncGenerator<Uint8Array> {
  for await (const message of call) {
    const { data, remarks } = message as CopyResponse;
    if (remarks.length > 0) remark(remarks.toString());
    if (data.length > 0) yield data;
  }
}

async function write(
  call: CopyCall,
  frame: NonNullable<CopyRequest["frame"]>,
  over: AbortSignal,
): Promise<void> {
  if (call.write({ frame }) || over.aborted) return;
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
