import { useLayoutEffect, useState } from "preact/hooks";
import type {
  CertificateRow,
  LiveMessage,
  LiveTopic,
  NodeRow,
  ObjectRow,
  PodRow,
  ResourceRow,
  WorkspaceRow,
} from "../../src/dashboard/live/rows.ts";
import { followStream } from "./follow-stream.ts";

interface RowTypes {
  readonly nodes: NodeRow;
  readonly pods: PodRow;
  readonly resources: ResourceRow;
  readonly workspaces: WorkspaceRow;
  readonly objects: ObjectRow;
  readonly certificates: CertificateRow;
}

const TOPICS: readonly LiveTopic[] = ["nodes", "pods", "resources", "workspaces", "objects", "certificates"];

/**
 * "connecting" until all tables have arrived, then "live"; "lost" while the coordinator does not
 * answer.
 */
export type Connection = "connecting" | "live" | "lost";

/** The rows of one table, by key and in the order of their keys. */
class LiveTable<Row> {
  readonly rows = new Map<string, Row>();
  #sorted: readonly Row[] | undefined;

  get sorted(): readonly Row[] {
    this.#sorted ??= [...this.rows.entries()].sort(([a], [b]) => compareKeys(a, b)).map(([, row]) => row);
    return this.#sorted;
  }

  apply(rows: Readonly<Record<string, Row | null>>): void {
    for (const [key, row] of Object.entries(rows)) {
      if (row === null) this.rows.delete(key);
      else this.rows.set(key, row);
    }
    this.#sorted = undefined;
  }

  clear(): void {
    this.rows.clear();
    this.#sorted = undefined;
  }
}

const collator = new Intl.Collator("en", { numeric: true });

function compareKeys(a: string, b: string): number {
  return collator.compare(a, b);
}

/** Receives all live tables of the coordinator over one stream. */
export class Live {
  readonly #tables = {
    nodes: new LiveTable<NodeRow>(),
    pods: new LiveTable<PodRow>(),
    resources: new LiveTable<ResourceRow>(),
    workspaces: new LiveTable<WorkspaceRow>(),
    objects: new LiveTable<ObjectRow>(),
    certificates: new LiveTable<CertificateRow>(),
  };
  readonly #listeners = new Set<() => void>();
  #connection: Connection = "connecting";
  #frame = 0;

  get connection(): Connection {
    return this.#connection;
  }

  start(): () => void {
    return followStream("live", {
      onMessage: (data) => this.#handle(JSON.parse(data) as LiveMessage),
      onLost: () => this.#set("lost"),
      retryMs: RETRY_MS,
    });
  }

  rows<Topic extends LiveTopic>(topic: Topic): readonly RowTypes[Topic][] {
    return this.#tables[topic].sorted as readonly RowTypes[Topic][];
  }

  row<Topic extends LiveTopic>(topic: Topic, key: string): RowTypes[Topic] | undefined {
    return this.#tables[topic].rows.get(key) as RowTypes[Topic] | undefined;
  }

  /**
   * Calls the listener at most once for each animation frame with changes. Returns a function that
   * removes the listener.
   */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #handle(message: LiveMessage): void {
    if (message.reset) {
      for (const topic of TOPICS) this.#tables[topic].clear();
      this.#set("connecting");
    }
    if (message.nodes) this.#tables.nodes.apply(message.nodes);
    if (message.pods) this.#tables.pods.apply(message.pods);
    if (message.resources) this.#tables.resources.apply(message.resources);
    if (message.workspaces) this.#tables.workspaces.apply(message.workspaces);
    if (message.objects) this.#tables.objects.apply(message.objects);
    if (message.certificates) this.#tables.certificates.apply(message.certificates);
    if (message.complete) this.#set("live");
    this.#draw();
  }

  #set(connection: Connection): void {
    this.#connection = connection;
    this.#draw();
  }

  #draw(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      for (const listener of this.#listeners) listener();
    });
  }
}

const RETRY_MS = 3_000;

/** Renders the component again whenever a table changes. */
export function useLive(live: Live): Live {
  const [, redraw] = useState({});
  // A layout effect runs in the same turn as the rendering, so that no change is missed in between.
  useLayoutEffect(() => live.listen(() => redraw({})), [live]);
  return live;
}
