/** Reads stored images. The implementation is `CtrImages`. All calls reject with a RuntimeError. */
export interface ImageContent {
  /**
   * Returns the digest of the manifest or index to which the image's full name refers. Undefined if there is no such
   * image.
   */
  target(reference: string, signal: AbortSignal): Promise<string | undefined>;
  /** Reads the content with this digest. */
  read(digest: string, signal: AbortSignal): AsyncIterable<Buffer>;
}
