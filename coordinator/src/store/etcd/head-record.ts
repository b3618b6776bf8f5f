import type { Head } from "../format/findings.ts";
import { decodeFields, encodeFields, unreadable } from "../format/meta-codec.ts";
import { HEAD_KEY } from "./layout.ts";

/**
 * The head as written by the leader. `opening` differs for each opening, so that two leaders never write the same bytes.
 */
export interface HeadRecord extends Head {
  readonly opening: string;
}

export function encodeHead(head: HeadRecord): Buffer {
  return encodeFields(HEAD_KEY, head);
}

/** Decodes a head. @throws StoreError CORRUPT if it differs from what was written. */
export function decodeHead(value: Buffer): HeadRecord {
  const { store, revision, chain, opening } = decodeFields(HEAD_KEY, value);
  if (typeof store !== "string" || typeof revision !== "number") throw unreadable(HEAD_KEY);
  if (typeof chain !== "string" || typeof opening !== "string") throw unreadable(HEAD_KEY);
  return { store, revision, chain, opening };
}
