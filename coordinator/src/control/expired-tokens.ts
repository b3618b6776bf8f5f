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

/** The interval of the removal. Join tokens are valid for half an hour at most, so few expired ones accumulate. */
const INTERVAL_MS = 10 * 60 * 1000;
/** The time for which expired join tokens are kept, so that agents that use them get the reason of their rejection. */
const KEEP_MS = 60 * 60 * 1000;
const MAX_PER_SWEEP = 40;
/** The time for which expired API tokens are kept, so that people see in the list why their scripts are rejected. */
const KEEP_API_TOKENS_MS = 7 * 24 * 3600 * 1000;

/** Removes join and API tokens some time after they have expired. Returns a function that stops the removal. */
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
    (key) => ({ type: "delete", key }) as const,
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
