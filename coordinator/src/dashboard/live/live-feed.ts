import type { MonotonicClock } from "@forage/common/clock";
import { pause } from "@forage/common/clock";
import { Signal } from "../../state/signal.ts";
import type { LiveTables } from "./live-tables.ts";
import { LIVE_TOPICS, type LiveTopic } from "./rows.ts";

export interface LiveFeedOptions {
  readonly tables: LiveTables;
  readonly clock: MonotonicClock;
  /** Reports whether the caller may see nodes, which are cluster-scoped. */
  readonly seesNodes: boolean;
  /** Reports whether the caller may see workspaces, which all share one namespace. */
  readonly seesWorkspaces: boolean;
  /** Reports whether the caller may see certificates, which are cluster-scoped. */
  readonly seesCertificates: boolean;
  readonly seesNamespace: (namespace: string) => boolean;
}

/**
 * The most rows in one message, about 100 KB. A message is built once the browser has read the last
 * one.
 */
export const MAX_ROWS = 400;
/** The pause between messages. Hundreds of pods may change at once, faster than anyone reads. */
const PAUSE_MS = 250;

/**
 * Yields the tables and then their changes, as `LiveMessage` in JSON. Only the keys of changed rows
 * are queued, and rows are built when they are sent. A slow browser therefore receives the newest
 * state, with at most one row for each object.
 */
export async function* liveFeed(options: LiveFeedOptions, signal: AbortSignal): AsyncGenerator<string> {
  const { tables, clock } = options;
  const changed = new Signal();
  const waiting: Readonly<Record<LiveTopic, Set<string>>> = {
    nodes: new Set(),
    resources: new Set(),
    pods: new Set(),
    workspaces: new Set(),
    objects: new Set(),
    certificates: new Set(),
  };
  const sees = visibility(options);
  const note = (topic: LiveTopic, key: string): void => {
    if (sees(topic, key)) waiting[topic].add(key);
  };
  const unfollow = tables.follow({
    changed: (topic, key) => {
      note(topic, key);
      changed.raise();
    },
  });
  try {
    for (const topic of LIVE_TOPICS) for (const key of tables.keys(topic)) note(topic, key);
    let [first, complete] = [true, false];
    while (!signal.aborted) {
      const rows = drainRows(waiting, tables);
      const more = LIVE_TOPICS.some((topic) => waiting[topic].size > 0);
      const marks = [first ? ['"reset":true'] : [], complete || more ? [] : ['"complete":true']].flat();
      if (rows.length > 0 || marks.length > 0) yield `{${[...marks, ...rows].join(",")}}`;
      first = false;
      if (more) continue;
      complete = true;
      await changed.wait(signal);
      await pause(clock, PAUSE_MS, signal);
    }
  } finally {
    unfollow();
  }
}

/** Removes at most MAX_ROWS keys from the sets, and returns their rows as members of a message. */
function drainRows(waiting: Readonly<Record<LiveTopic, Set<string>>>, tables: LiveTables): string[] {
  let room = MAX_ROWS;
  return LIVE_TOPICS.flatMap((topic) => {
    const members: string[] = [];
    for (const key of waiting[topic]) {
      if (room === 0) break;
      room--;
      waiting[topic].delete(key);
      members.push(`${JSON.stringify(key)}:${tables.row(topic, key) ?? "null"}`);
    }
    return members.length === 0 ? [] : [`"${topic}":{${members.join(",")}}`];
  });
}

function visibility({
  seesNodes,
  seesWorkspaces,
  seesCertificates,
  seesNamespace,
}: LiveFeedOptions): (topic: LiveTopic, key: string) => boolean {
  const known = new Map<string, boolean>();
  return (topic, key) => {
    if (topic === "nodes") return seesNodes;
    if (topic === "workspaces") return seesWorkspaces;
    if (topic === "certificates") return seesCertificates;
    const namespace = key.slice(0, key.indexOf("/"));
    const before = known.get(namespace);
    if (before !== undefined) return before;
    const sees = seesNamespace(namespace);
    known.set(namespace, sees);
    return sees;
  };
}
