import { createHash } from "node:crypto";
import { CoordinatorError } from "../../errors.ts";
import { assertNotAborted } from "./content-errors.ts";
import type { Digest, PutOptions } from "./content-store.ts";
import { untilAborted } from "./until-aborted.ts";

/** Passes chunks through while it limits their size and computes their digest. */
export interface VerifiedChunks extends AsyncIterable<Uint8Array> {
  /** The digest of all chunks. Available only after the iteration has ended. */
  readonly digest: Digest;
}

/**
 * Passes chunks through. Throws if they exceed the limit or if the signal aborts. After the last
 * chunk it throws the errors of `verify`, so that the consumer never sees the regular end of a
 * wrong archive.
 */
export function verifiedChunks(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, verify, signal }: PutOptions,
): VerifiedChunks {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  let digest: Digest | undefined;
  return {
    get digest() {
      if (digest === undefined) throw new CoordinatorError("INTERNAL", "the archive's stream has not ended");
      return digest;
    },
    async *[Symbol.asyncIterator]() {
      for await (const chunk of untilAborted(chunks, signal)) {
        sizeBytes += chunk.byteLength;
        if (sizeBytes > maxBytes)
          throw new CoordinatorError(
            "RESOURCE_EXHAUSTED",
            `the archive is larger than ${maxBytes} bytes, the limit for one archive`,
          );
        hash.update(chunk);
        yield chunk;
      }
      assertNotAborted(signal);
      const actual = { sizeBytes, sha256: hash.digest("hex") };
      verify(actual);
      digest = actual;
    },
  };
}
