import type { Compare, LeaseId, Op, Revision } from "../store.ts";
import { text } from "./fixture.ts";

export interface ModelRecord {
  readonly value: string;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
  readonly version: number;
  /** The key's lease. Undefined: it has none. */
  readonly lease: LeaseId | undefined;
}

export type ModelState = ReadonlyMap<string, ModelRecord>;

/** A simple model of the store: a complete copy of the state for each revision. */
export class Model {
  readonly #states: ModelState[] = [new Map()];
  readonly #events: string[][] = [[]];

  get revision(): Revision {
    return this.#states.length - 1;
  }

  at(revision: Revision): ModelState {
    return this.#states[revision] ?? new Map();
  }

  holds(compares: readonly Compare[], revision: Revision): boolean {
    return compares.every((compare) => holds(compare, this.at(revision).get(compare.key)));
  }

  /** Returns the number of keys that the ops would delete now. */
  deleted(ops: readonly Op[]): number {
    const keys = [...this.at(this.revision).keys()];
    return keys.filter((key) => ops.some((op) => op.type !== "put" && matches(op, key))).length;
  }

  /** Returns the keys of the lease, in order. */
  leased(lease: LeaseId | undefined, revision = this.revision): string[] {
    return [...this.at(revision)]
      .flatMap(([key, record]) => (lease !== undefined && record.lease === lease ? [key] : []))
      .sort();
  }

  /** Applies the operations as the next revision. */
  apply(ops: readonly Op[]): void {
    const revision = this.revision + 1;
    const state = new Map(this.at(this.revision));
    const events: string[] = [];
    for (const op of ops) {
      if (op.type === "put") {
        const old = state.get(op.key);
        const value = text(op.value) ?? "";
        const createRevision = old?.createRevision ?? revision;
        const version = (old?.version ?? 0) + 1;
        state.set(op.key, { value, createRevision, modRevision: revision, version, lease: op.lease });
        events.push(`+${op.key}=${value}`);
        continue;
      }
      for (const key of [...state.keys()].sort()) {
        if (!matches(op, key)) continue;
        state.delete(key);
        events.push(`-${key}`);
      }
    }
    this.#states.push(state);
    this.#events.push(events);
  }

  /** Returns the changes of these revisions that a watcher of the prefix receives, as `print` formats them. */
  watched(prefix: string, from: Revision, through: Revision): string[] {
    const lines: string[] = [];
    for (let revision = from; revision <= through; revision++) {
      const events = (this.#events[revision] ?? []).filter((event) => event.slice(1).startsWith(prefix));
      if (events.length > 0) lines.push([revision, ...events].join(" "));
    }
    return lines;
  }
}

function holds(compare: Compare, found: ModelRecord | undefined): boolean {
  switch (compare.type) {
    case "exists":
      return found !== undefined;
    case "absent":
      return found === undefined;
    case "mod-revision":
      return (found?.modRevision ?? 0) === compare.revision;
    case "create-revision":
      return (found?.createRevision ?? 0) === compare.revision;
    case "version":
      return (found?.version ?? 0) === compare.version;
    case "value":
      return found?.value === text(compare.value);
    default:
      return compare satisfies never;
  }
}

function matches(op: Op, key: string): boolean {
  return op.type === "delete-prefix" ? key.startsWith(op.prefix) : op.key === key;
}
