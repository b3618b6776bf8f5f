import type { Log } from "@forage/common/log";
import type { ApiTokenRecord } from "@forage/identity/api-token";
import type { CoordinatorTokenRecord } from "@forage/identity/coordinator-token";
import type { JoinTokenRecord } from "@forage/identity/join-token";
import { ObjectFaults } from "../faults/object-faults.ts";
import { decodeJsonRecord } from "../model/codec.ts";
import { apiTokenUseKey, PREFIXES } from "../model/keys.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

type TokenRecord = JoinTokenRecord | CoordinatorTokenRecord | ApiTokenRecord;

/** Join tokens live for half an hour at most; looking this often keeps few dead ones. */
const INTERVAL_MS = 10 * 60 * 1000;
/** A token stays for a while after its end, so that its late users learn why it is refused. */
const KEEP_MS = 60 * 60 * 1000;
const MAX_PER_SWEEP = 40;
/** An expired API token stays in the list for a week, so that people see why their scripts were refused. */
const KEEP_API_TOKENS_MS = 7 * 24 * 3600 * 1000;

/** Removes tokens of joins and API tokens that have long expired. Returns how to stop. */
export function sweepExpiredTokens(options: {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}): () => void {
  const { store, clock, log } = options;
  const faults = new ObjectFaults({ loop: "expired-tokens", log });
  let cancel = (): void => {};
  const later = (): void => {
    cancel = clock.schedule(INTERVAL_MS, () => {
      sweep(store, clock.nowMs(), faults).catch((err: unknown) =>
        log.warn({ event: "expired-tokens-not-removed", err }),
      );
      later();
    });
  };
  later();
  return () => cancel();
}

async function sweep(store: Store, nowMs: number, faults: ObjectFaults): Promise<void> {
  const joins = await expiredKeys(store, PREFIXES.joinTokens, nowMs - KEEP_MS, faults);
  const coordinators = await expiredKeys(store, PREFIXES.coordinatorTokens, nowMs - KEEP_MS, faults);
  const tokens = await expiredKeys(store, PREFIXES.apiTokens, nowMs - KEEP_API_TOKENS_MS, faults);
  const uses = tokens.map((key) => apiTokenUseKey(key.slice(PREFIXES.apiTokens.length)));
  const ops = [...joins, ...coordinators, ...tokens, ...uses].map(
    (key) => ({ kind: "delete", key }) as const,
  );
  if (ops.length > 0) await store.txn([], ops);
}

async function expiredKeys(
  store: Store,
  prefix: string,
  beforeMs: number,
  faults: ObjectFaults,
): Promise<string[]> {
  const { records } = await store.range(prefix);
  const expired = records.filter(({ key, value }) => {
    return faults.attempt(
      { kind: prefix.slice(0, -2), namespace: "", name: key.slice(prefix.length) },
      () => {
        const { expiresAtMs } = decodeJsonRecord<TokenRecord>(key, value);
        return expiresAtMs !== undefined && expiresAtMs < beforeMs;
      },
    );
  });
  return expired.slice(0, MAX_PER_SWEEP).map(({ key }) => key);
}
