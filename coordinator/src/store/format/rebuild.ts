import { Timeline, type Version } from "../core/timeline.ts";
import type { Revision } from "../store.ts";
import { corrupt } from "./corrupt.ts";
import { CHAIN_START, type Chain } from "./entry-codec.ts";
import type { Inspection } from "./findings.ts";
import type { Base, StoreMeta } from "./meta-codec.ts";

/** The content of an undamaged database. */
export interface Rebuilt {
  readonly meta: StoreMeta;
  readonly base: Base;
  readonly timeline: Timeline;
  /** The chains of the base's revision and of each later revision. */
  readonly chains: readonly Chain[];
}

/** Returns the state and history of a database. Throws CORRUPT with all defects if it is damaged. */
export function rebuild(inspection: Inspection): Rebuilt {
  const { meta, base, records, entries } = inspection;
  const problems = [...inspection.problems];
  if (meta === undefined || base === undefined || problems.length > 0) throw corrupt(problems);

  const timeline = new Timeline(records, base.revision);
  const chains: Chain[] = [base.revision === 0 ? CHAIN_START : base.chain];
  for (const entry of entries) {
    for (const change of entry.changes) {
      const problem = checkSuccession(change, timeline.read(change.key, timeline.head), entry.revision);
      if (problem !== undefined) problems.push(problem);
    }
    timeline.replay(entry.revision, entry.changes);
    chains.push(entry.chain);
  }
  if (problems.length > 0) throw corrupt(problems);
  return { meta, base, timeline, chains };
}

/** Checks each change against the version that it replaces. Unlike a count, this finds the name of a missing record. */
function checkSuccession(
  change: Version,
  previous: Version | undefined,
  revision: Revision,
): string | undefined {
  const expected = change.value === undefined ? undefined : change.version - 1;
  const found = previous?.version ?? 0;
  const sameLife =
    previous === undefined || change.value === undefined || previous.createRevision === change.createRevision;
  const fits = expected === undefined ? previous !== undefined : expected === found && sameLife;
  if (fits) return undefined;
  return `revision ${revision} changes the record ${JSON.stringify(change.key)}, whose previous version is missing`;
}
