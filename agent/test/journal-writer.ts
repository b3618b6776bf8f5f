import { argv, stdout } from "node:process";
import { Journal } from "../src/journal/journal.ts";
import { loadJournalKey } from "../src/journal/journal-key.ts";
import { deltaOf } from "./journal-load.ts";

/** Applies deltas endlessly and prints each revision once it is acknowledged. The test kills it. */
const dir = argv[2];
if (dir === undefined) throw new Error("usage: journal-writer DIR");
const key = await loadJournalKey({ dir: `${dir}/key` });
const journal = await Journal.open({ dir, key, signal: new AbortController().signal });
if (journal.clusterId === "") await journal.replace({ clusterId: "c", revision: 0n, pods: [] });
for (;;) {
  const revision = journal.revision + 1n;
  const saved = journal.saveState("pod-1", { hostPorts: [], containers: {}, startedAtMs: Number(revision) });
  await journal.apply(deltaOf(revision));
  await saved;
  stdout.write(`${revision}\n`);
}
