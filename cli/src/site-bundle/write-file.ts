import { open, rename, rm, stat } from "node:fs/promises";
import type { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, createZstdCompress } from "node:zlib";
import { messageOf } from "@forage/common/message-of";
import { CliError } from "../errors.ts";

/**
 * Writes a new file that only its owner can read. Returns its size. The file gets its name once it
 * is complete and on disk; a failure leaves no file. It is compressed if its name ends with `.gz`
 * or `.zst`.
 */
export async function writeFile(
  path: string,
  chunks: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<number> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  if (exists) throw new CliError("USAGE", `${path} exists: name another file`);
  const partial = `${path}.partial`;
  const file = await open(partial, "wx", 0o600).catch((cause: unknown) => {
    throw new CliError("USAGE", `${partial} can't be created: ${messageOf(cause)}`, { cause });
  });
  try {
    const output = file.createWriteStream({ flush: true });
    const compressor = compressorFor(path);
    await (compressor === undefined
      ? pipeline(chunks, output, { signal })
      : pipeline(chunks, compressor, output, { signal }));
    await rename(partial, path);
    return output.bytesWritten;
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(partial, { force: true });
    throw error;
  }
}

function compressorFor(path: string): Transform | undefined {
  if (path.endsWith(".gz")) return createGzip();
  return path.endsWith(".zst") ? createZstdCompress() : undefined;
}
