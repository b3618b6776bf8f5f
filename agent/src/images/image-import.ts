/**
 * Stores images that don't come from a registry. The implementation is `CtrImages`. All calls reject with a
 * RuntimeError.
 */
export interface ImageImport {
  /** Returns the digests of all stored content. */
  contents(signal: AbortSignal): Promise<ReadonlySet<string>>;
  /**
   * Stores and unpacks an image from a tar archive with an OCI layout, under the name in the layout. If the archive
   * throws, no image is stored, and the call rejects with the same error.
   */
  load(archive: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void>;
  /** Adds a name to a stored image. Replaces the name if another image has it. */
  tag(name: string, further: string, signal: AbortSignal): Promise<void>;
  /** Removes a name. Accepts an unknown name. */
  untag(name: string, signal: AbortSignal): Promise<void>;
}
