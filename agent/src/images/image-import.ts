/** Stores images that don't come from a registry. The real one is `CtrImages`. All calls reject with a RuntimeError. */
export interface ImageImport {
  /** Returns the digests of everything that is stored. */
  contents(signal: AbortSignal): Promise<ReadonlySet<string>>;
  /**
   * Stores and unpacks the image of an OCI layout in a tar under the name that the layout gives it. An archive that throws leaves no
   * image behind, and rejects with what it threw.
   */
  load(archive: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void>;
  /** Gives a stored image a further name, also when another image has that name. */
  tag(name: string, further: string, signal: AbortSignal): Promise<void>;
  /** Removes a name. One that isn't there is fine. */
  untag(name: string, signal: AbortSignal): Promise<void>;
}
