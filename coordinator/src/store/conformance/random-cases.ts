import { randomOf } from "@forage/common/random";
import type { Revision, Store } from "../store.ts";
import { checkHistory } from "./check-history.ts";
import { put, type StoreFactory, storeCase } from "./fixture.ts";
import { runClient } from "./random-client.ts";
import { followRandomly } from "./random-watcher.ts";
import { type Call, Recorder } from "./recorder.ts";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const CLIENTS = 8;
const CALLS_PER_CLIENT = 40;
/** The prefixes of the watchers. "" matches all keys, the others only some of the clients' keys. */
const WATCHED = ["", "", "a", "a/", "b/1"];

/** Runs random clients and watchers concurrently, and then checks the recorded history against the model. */
export function randomCases(open: StoreFactory): void {
  for (const seed of SEEDS) {
    storeCase(
      open,
      `seed ${seed}: the calls of clients are linearizable, and watchers receive every change`,
      async ({ store }) => {
        const recorder = new Recorder();
        const stop = new AbortController();
        const random = randomOf(seed);
        const watchers = WATCHED.map((prefix) =>
          followRandomly(store, prefix, randomOf(random.below(2 ** 31)), stop.signal),
        );
        const clients = Array.from({ length: CLIENTS }, (_, client) =>
          runClient(store, recorder, randomOf(random.below(2 ** 31)), client, CALLS_PER_CLIENT),
        );
        await Promise.all(clients);
        const last = await writeMark(store, recorder);
        const logs = await Promise.all(watchers.map((watcher) => watcher.finish(last)));
        stop.abort();
        checkHistory(recorder.calls, logs.flat());
      },
    );
  }
}

/** Writes a last change that every watcher receives, so that the test can detect the end of its changes. */
async function writeMark(store: Store, recorder: Recorder): Promise<Revision> {
  const ops = [put("a/end"), put("b/1/end")];
  const mark = async (): Promise<Call> => ({
    type: "txn",
    compares: [],
    ops,
    result: await store.txn([], ops),
  });
  await recorder.record(mark, () => store.revision);
  return store.revision;
}
