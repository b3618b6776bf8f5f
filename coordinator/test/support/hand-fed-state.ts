import { ClusterView } from "../../src/state/cluster-view.ts";
import type { Op, WatchEvent } from "../../src/store/index.ts";
import { type Contents, opsOf } from "./view.ts";

/**
 * A view without a store. Entries that a test puts are in it at once, with one revision for each
 * call.
 */
export class HandFedState {
  readonly state = new ClusterView();
  #revision = 0;

  constructor(contents: Contents = {}) {
    this.put(contents);
  }

  /** Puts the entries' records. Nodes also get their health. */
  put(contents: Contents): void {
    this.#apply(opsOf(contents));
    for (const { name, health } of contents.nodes ?? []) this.state.setNodeHealth(name, health, true);
  }

  remove(...keys: readonly string[]): void {
    this.#apply(keys.map((key) => ({ type: "delete", key })));
  }

  /** Writes records of any kind. */
  write(...ops: readonly Op[]): void {
    this.#apply(ops);
  }

  #apply(ops: readonly Op[]): void {
    const revision = ++this.#revision;
    const events = ops.flatMap((op): WatchEvent[] => {
      if (op.type === "delete") return [{ type: "delete", key: op.key }];
      if (op.type !== "put") return [];
      const record = { key: op.key, value: op.value, createRevision: 1, modRevision: revision, version: 1 };
      return [{ type: "put", record }];
    });
    this.state.apply(events, revision);
  }
}
