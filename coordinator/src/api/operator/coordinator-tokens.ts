import { mintCoordinatorToken } from "@forage/identity/coordinator-token";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { encodeJsonRecord } from "../../model/codec.ts";
import { coordinatorTokenKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { onlyOneCoordinator, type ReadKeyFiles } from "../../peers/enroll-coordinator.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { translate } from "./translate.ts";

export interface CoordinatorTokenOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Returns the pin of the authority. A new coordinator verifies this one with it before it sends the secret. */
  readonly authorityPin: () => string;
  /** The addresses (HOST:PORT) at which other hosts reach the coordinator, the preferred one first. */
  readonly reachableAt: readonly string[];
  readonly readKeyFiles?: ReadKeyFiles | undefined;
}

/**
 * Creates a token for one additional coordinator. @throws CoordinatorError INVALID, or FAILED_PRECONDITION if the store
 * allows only one coordinator.
 */
export async function createCoordinatorToken(
  { ttlSeconds }: wire.CreateCoordinatorTokenRequest,
  { store, clock, randomBytes, authorityPin, reachableAt, readKeyFiles }: CoordinatorTokenOptions,
): Promise<wire.CreateCoordinatorTokenResponse> {
  if (readKeyFiles === undefined) throw onlyOneCoordinator();
  const ttl = ttlSeconds === 0 ? {} : { ttlMs: ttlSeconds * 1000 };
  const mint = { pin: authorityPin(), nowMs: clock.nowMs(), randomBytes, ...ttl };
  const { token, record } = translate(() => mintCoordinatorToken(mint));
  await store.txn(
    [],
    [{ type: "put", key: coordinatorTokenKey(record.id), value: encodeJsonRecord(record) }],
  );
  return { token, expiresAt: toTimestamp(record.expiresAtMs), coordinators: [...reachableAt] };
}
