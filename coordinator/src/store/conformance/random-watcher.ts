import assert from "node:assert/strict";
import type { Random } from "@forage/common/random";
import type { Revision, Store } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { print, until } from "./fixture.ts";

/** The changes that one watcher received in a range of revisions. A new range begins when the watcher had to list again. */
export interface Stretch {
  readonly prefix: string;
  readonly from: Revision;
  through: Revision;
  readonly lines: string[];
}

export interface RandomWatcher {
  /** Waits until the watcher has received the revision, which must contain a change for it. */
  finish(last: Revision): Promise<readonly Stretch[]>;
}

/**
 * Watches, disconnects at random and resumes. If the revision to resume from is compacted, it lists again and continues
 * from there.
 */
export function followRandomly(
  store: Store,
  prefix: string,
  random: Random,
  signal: AbortSignal,
): RandomWatcher {
  const stretches: Stretch[] = [{ prefix, from: 1, through: 0, lines: [] }];
  const current = (): Stretch => stretches.at(-1) ?? assert.fail();

  const followOnce = async (): Promise<void> => {
    const stretch = current();
    for await (const batch of store.watch(prefix, stretch.through + 1, signal)) {
      assert.ok(batch.revision > stretch.through, `revision ${batch.revision} followed ${stretch.through}`);
      assert.ok(
        batch.revision <= store.revision,
        `revision ${batch.revision} was received before it was durable`,
      );
      stretch.through = batch.revision;
      stretch.lines.push(print(batch));
      if (random.chance(0.2)) return;
      if (random.chance(0.2)) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await followOnce();
      } catch (error) {
        if (!(error instanceof StoreError && (error.code === "COMPACTED" || error.code === "SLOW")))
          throw error;
        const { revision } = await store.range(prefix);
        stretches.push({ prefix, from: revision + 1, through: revision, lines: [] });
      }
    }
  };
  const following = follow();
  following.catch(() => {});

  return {
    finish: async (last) => {
      const caughtUp = until(
        () => current().through >= last,
        `the watcher of "${prefix}" receives revision ${last}`,
      );
      await Promise.race([following, caughtUp]);
      return stretches;
    },
  };
}
