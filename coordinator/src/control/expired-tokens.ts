import type { JoinTokenRecord } from "@forage/identity/join-token";
import type { Logger } from "pino";
import { decodeJsonRecord } from "../model/codec.ts";
import { prefixes } from "../model/keys.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "./clock.ts";

/** Join tokens live for half an hour at most; looking this often keeps few dead ones. */
const intervalMs = 10 * 60 * 1000;
/** A token stays a while after its end, so that whoever presents it late hears why it is refused. */
const keepMs = 60 * 60 * 1000;
const maxPerSweep = 100;

/** Removes join tokens that have long expired. Returns how to stop. */
export function sweepExpiredTokens(options: {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}): () => void {
  const { store, clock, log } = options;
  let cancel = (): void => {};
  const later = (): void => {
    cancel = clock.schedule(intervalMs, () => {
      sweep(store, clock.nowMs() - keepMs).catch((err: unknown) =>
        log.warn({ err }, "expired join tokens were not removed"),
      );
      later();
    });
  };
  later();
  return () => cancel();
}

async function sweep(store: Store, beforeMs: number): Promise<void> {
  const { records } = await store.range(prefixes.joinTokens);
  const expired = records.filter(
    ({ key, value }) => decodeJsonRecord<JoinTokenRecord>(key, value).expiresAtMs < beforeMs,
  );
  const ops = expired.slice(0, maxPerSweep).map(({ key }) => ({ kind: "delete", key }) as const);
  if (ops.length > 0) await store.txn([], ops);
}
