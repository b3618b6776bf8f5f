import { StoreEngine, type StoreEngineOptions } from "../core/store-engine.ts";
import type { DurableStore } from "../durable-store.ts";
import { type BackupInfo, writeBackup } from "../format/backup.ts";
import { corrupt } from "../format/corrupt.ts";
import type { StoreMeta } from "../format/meta-codec.ts";
import { StoreError } from "../store-error.ts";
import type { Etcd } from "./etcd.ts";
import type { RetryTiming } from "./insist.ts";
import type { Leadership } from "./leadership.ts";
import { readStore } from "./read-store.ts";
import { markMoved } from "./write-restored.ts";

/** A store in etcd. */
export interface EtcdStore extends DurableStore {
  /** Marks the store as moved to another place. It can't be opened afterwards. */
  retire(to: string): Promise<void>;
}

/** The resources of an engine. */
export interface EngineResources {
  readonly calls: RetryTiming;
  /** Returns the leadership. Undefined while another coordinator leads. */
  readonly leadership: () => Leadership | undefined;
  readonly etcd: Etcd;
  readonly close: () => void;
}

/** The store engine on etcd. It closes the resources that it owns. */
export class EtcdStoreEngine extends StoreEngine implements EtcdStore {
  readonly id: string;
  readonly epoch: number;
  readonly lineage: string;
  readonly #own: EngineResources;
  #released: Promise<void> | undefined;

  constructor(options: StoreEngineOptions, own: EngineResources & { meta: StoreMeta; lineage: string }) {
    super(options);
    this.#own = own;
    this.id = own.meta.id;
    this.epoch = own.meta.epoch;
    this.lineage = own.lineage;
  }

  get leadsSinceMs(): number | undefined {
    return this.#own.leadership()?.self.sinceMs;
  }

  get unansweredMs(): number {
    return this.#own.calls.outage.lastedMs;
  }

  get leadIsConfirmed(): boolean {
    return this.#own.leadership()?.isConfirmed ?? false;
  }

  readonly members = () => this.#own.etcd.members();

  async backup(file: string): Promise<BackupInfo> {
    const { versions, revision } = this.snapshot();
    return writeBackup(file, { store: this.id, epoch: this.epoch, revision }, versions);
  }

  async verify(): Promise<void> {
    await this.range("", { limit: 1 });
    const acknowledged = this.revision;
    const { inspection, head } = await readStore(this.#own.etcd, this.#own.calls);
    const problems = [...inspection.problems];
    if ((head?.revision ?? 0) < acknowledged)
      problems.push(`the head is at revision ${head?.revision ?? 0}, before ${acknowledged}`);
    if (problems.length > 0) throw corrupt(problems, ADVICE.serving);
  }

  retire(to: string): Promise<void> {
    const leadership = this.#own.leadership();
    if (leadership === undefined)
      return Promise.reject(new StoreError("UNAVAILABLE", "another coordinator leads"));
    return markMoved({ ...this.#own, leadership }, to);
  }

  override close(): Promise<void> {
    this.#released ??= super.close().finally(() => this.#own.close());
    return this.#released;
  }
}

/** The advice in errors about a damaged store. */
export const ADVICE = {
  refused: "It was not changed. Restore a backup under another prefix",
  serving:
    "The coordinator serves intact state from memory: make a backup now and restore it under another prefix",
};
