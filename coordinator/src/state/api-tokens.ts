import type { ApiTokenRecord } from "@forage/identity/api-token";
import { CoordinatorError } from "../errors.ts";
import { decodeJsonRecord } from "../model/codec.ts";
import { PREFIXES } from "../model/keys.ts";
import type { StoredRecord } from "../store/index.ts";
import type { ApiTokenEntry } from "./entries.ts";
import type { IndexMap } from "./index-map.ts";

/** Applies a change of a token's record to the view. Returns the token before and after. */
export function applyToken(
  tokens: IndexMap<ApiTokenEntry>,
  key: string,
  stored: StoredRecord | undefined,
): { readonly before: ApiTokenEntry | undefined; readonly after: ApiTokenEntry | undefined } {
  const id = key.slice(PREFIXES.apiTokens.length);
  const after: ApiTokenEntry | undefined = stored && {
    id,
    revision: stored.modRevision,
    record: decodeToken(key, stored.value),
  };
  return { before: tokens.set(id, after), after };
}

/**
 * Decodes a token. @throws CoordinatorError if the record is not a token's, so that the list of tokens never contains an
 * invalid one.
 */
function decodeToken(key: string, value: Uint8Array): ApiTokenRecord {
  const record = decodeJsonRecord<Partial<ApiTokenRecord> | null>(key, value);
  if (typeof record?.createdAtMs !== "number" || !Array.isArray(record.grants))
    throw new CoordinatorError("INTERNAL", `record ${key} is not a token`);
  return decodeJsonRecord<ApiTokenRecord>(key, value);
}
