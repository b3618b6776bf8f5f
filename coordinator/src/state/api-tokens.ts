import { decodeJsonRecord } from "../model/codec.ts";
import { prefixes } from "../model/keys.ts";
import type { StoredRecord } from "../store/index.ts";
import type { ApiTokenEntry } from "./entries.ts";
import type { IndexMap } from "./index-map.ts";

/** Puts a token's record into the view, or removes it. Returns the token before and after. */
export function applyToken(
  tokens: IndexMap<ApiTokenEntry>,
  key: string,
  stored: StoredRecord | undefined,
): { readonly before: ApiTokenEntry | undefined; readonly after: ApiTokenEntry | undefined } {
  const id = key.slice(prefixes.apiTokens.length);
  const after: ApiTokenEntry | undefined = stored && {
    id,
    revision: stored.modRevision,
    record: decodeJsonRecord(key, stored.value),
  };
  return { before: tokens.set(id, after), after };
}
