import { messageOf } from "@forage/common/message-of";
import { SupportOptions } from "@forage/proto/forage/agent/v1/agent";
import type { SessionBroker } from "../link/session-broker.ts";
import type { NodeEntry } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import type { SupportFile } from "./support-file.ts";

export interface NodeFilesOptions {
  readonly broker: Pick<SessionBroker, "open">;
  readonly clock: Pick<Clock, "schedule">;
}

/** The time limit for a node's files; the checks of a host take some seconds. */
const NODE_LIMIT_MS = 45_000;
const MAX_NODE_FILES = 20;
const MAX_NODE_LENGTH = 4 * 1024 * 1024;
const FILE_NAME = /^[a-z0-9][a-z0-9._-]{0,60}$/;

/** Returns the nodes whose agents are queried: the given ones, or those with problems first. */
export function chooseNodes(
  nodes: readonly NodeEntry[],
  names: readonly string[],
  max: number,
): { readonly chosen: readonly string[]; readonly rest: readonly string[] } {
  if (names.length > 0) return { chosen: [...new Set(names)], rest: [] };
  const byNeed = nodes.toSorted((a, b) => Number(a.health.ready) - Number(b.health.ready));
  const ordered = byNeed.map(({ name }) => name);
  return { chosen: ordered.slice(0, max), rest: ordered.slice(max) };
}

/**
 * Returns the files of a node's agent. A file without content contains the reason why something is
 * missing.
 */
export async function nodeFiles(
  node: string,
  signal: AbortSignal,
  { broker, clock }: NodeFilesOptions,
): Promise<SupportFile[]> {
  const files: SupportFile[] = [];
  const missing = (problem: string): SupportFile => ({ path: `nodes/${node}/agent`, content: "", problem });
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const late = `the agent did not send all files within ${NODE_LIMIT_MS / 1000} s`;
  const cancel = clock.schedule(NODE_LIMIT_MS, () => over.abort());
  try {
    const kind = { $case: "support", value: SupportOptions.fromPartial({}) } as const;
    const tunnel = broker.open(node, { podUid: "", container: "", kind }, either, "support bundle");
    let length = 0;
    try {
      for await (const { frame } of tunnel.fromAgent) {
        if (frame?.$case === "end") {
          const { error } = frame.value;
          return error === ""
            ? files
            : [...files, missing(`${error}; agents of older versions send no files`)];
        }
        if (frame?.$case !== "supportFile") continue;
        const { path, content, problem } = frame.value;
        length += content.length;
        if (!FILE_NAME.test(path)) return [...files, missing("the agent sent a file with a malformed name")];
        if (files.length >= MAX_NODE_FILES || length > MAX_NODE_LENGTH)
          return [...files, missing("the agent sent more than the limit of one node")];
        files.push({ path: `nodes/${node}/${path}`, content, problem });
      }
      return [...files, missing(over.signal.aborted ? late : "the agent's stream ended early")];
    } finally {
      tunnel.toAgent.close();
      // The rest of the agent's stream is cancelled.
      over.abort();
    }
  } catch (error) {
    return [...files, missing(over.signal.aborted ? late : messageOf(error))];
  } finally {
    cancel();
  }
}
