import type { ApiTokenRecord } from "@forage/identity/api-token";
import { CoordinatorError } from "../errors.ts";
import { decodeJsonRecord } from "../model/codec.ts";
import { PREFIXES } from "../model/keys.ts";
import type { StoredRecord } from "../store/index.ts";
import type { ApiTokenEntry } from "./entries.ts";
import type { IndexMap } from "./index-map.ts";

/** Puts a token's record into the view, or removes it. Returns the token before and after. */
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

/** @throws where the record is none of a token, so that no list of tokens fails by it. */
function decodeToken(key: string, value: Uint8Array): ApiTokenRecord {
  const record = decodeJsonRecord<Partial<ApiTokenRecord> | null>(key, value);
  if (typeof record?.createdAtMs !== "number" || !Array.isArray(record.grants))
    throw new CoordinatorError("INTERNAL", `record ${key} is none of a token`);
  return decodeJsonRecord<ApiTokenRecord>(key, value);
}
