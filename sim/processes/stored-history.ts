import { randomUUID } from "node:crypto";
import { systemClock } from "@forage/common/clock";
import { EtcdClient } from "../../coordinator/src/store/etcd/etcd-client.ts";
import { followEtcdStore } from "../../coordinator/src/store/etcd/etcd-follower.ts";
import { prefixed } from "../../coordinator/src/store/etcd/prefixed.ts";
import { ETCD_SCHEMA, etcdEndpoints } from "../../coordinator/src/store/etcd/settings.ts";
import { StoreError, type WatchBatch } from "../../coordinator/src/store/index.ts";
import { StoreRules } from "../fleet/store-rules.ts";

/** The history of the store in etcd, revision by revision, and the rules for it. */
export class StoredHistory {
  /** The violated rules. */
  readonly broken: string[] = [];
  readonly rules = new StoreRules((what) => this.broken.push(what));
  /** The number of times that each key was put. */
  readonly puts = new Map<string, number>();
  revision = 0;
  readonly #end = new AbortController();
  readonly #close: () => Promise<void>;
  readonly #following: Promise<void>;

  /** `endpoints` are the URLs of etcd. */
  static async follow(endpoints: readonly string[]): Promise<StoredHistory> {
    const { prefix, ...settings } = ETCD_SCHEMA.parse({ endpoints });
    const client = new EtcdClient({ endpoints: etcdEndpoints({ prefix, ...settings }), nowMs: Date.now });
    const store = await followEtcdStore({
      ...{ etcd: prefixed(client, prefix), self: { holder: "observer", name: "observer" } },
      ...{ clock: systemClock, random: Math.random, newId: randomUUID },
    });
    return new StoredHistory(
      (signal) => store.watch("", 1, signal),
      () => store.close(),
    );
  }

  private constructor(watch: (signal: AbortSignal) => AsyncIterable<WatchBatch>, close: () => Promise<void>) {
    this.#close = close;
    this.#following = this.#follow(watch);
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#following;
    await this.#close();
  }

  async #follow(watch: (signal: AbortSignal) => AsyncIterable<WatchBatch>): Promise<void> {
    try {
      for await (const batch of watch(this.#end.signal)) this.#apply(batch);
    } catch (error) {
      if (error instanceof StoreError && this.#end.signal.aborted) return;
      this.broken.push(`the history can't be followed: ${error}`);
    }
  }

  #apply(batch: WatchBatch): void {
    if (batch.revision !== this.revision + 1 && this.revision > 0)
      this.broken.push(`revision ${batch.revision} follows ${this.revision}`);
    this.revision = batch.revision;
    for (const event of batch.events)
      if (event.type === "put") this.puts.set(event.record.key, (this.puts.get(event.record.key) ?? 0) + 1);
    this.rules.apply(batch);
  }
}
