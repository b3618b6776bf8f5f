import type { Digest } from "./content-store.ts";

/**
 * Returns the file name of an object: its last segment, size and digest, separated by `@`, which
 * never occurs in a segment.
 */
export function fileName(object: string, { sizeBytes, sha256 }: Digest): string {
  return `${object.slice(object.lastIndexOf("/") + 1)}@${sizeBytes}@${sha256}`;
}

/** Parses a file name. Returns undefined for a file that is not an object. */
export function parseFileName(name: string): (Digest & { readonly segment: string }) | undefined {
  const match = /^([^@]+)@(\d{1,15})@([0-9a-f]{64})$/.exec(name);
  const [, segment = "", size = "", sha256 = ""] = match ?? [];
  return match === null ? undefined : { segment, sizeBytes: Number(size), sha256 };
}
