/** Reads stored images. The real one is `CtrImages`. All calls reject with a RuntimeError. */
export interface ImageContent {
  /** Returns the digest of the manifest or index that the image's full name stands for. Undefined: there is no such image. */
  target(reference: string, signal: AbortSignal): Promise<string | undefined>;
  /** Reads what has this digest. */
  read(digest: string, signal: AbortSignal): AsyncIterable<Buffer>;
}
