/**
 * The crash test runs and kills this program: `crash-writer.ts DIR WRITERS`. Each writer repeatedly
 * puts two keys of its own in one transaction. A line is printed for each acknowledgement: `WRITER
 * SEQUENCE REVISION`.
 */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { systemClock } from "@forage/common/clock";
import { openLevelStore } from "../../src/store/level/level-store.ts";

const [dir = "", writers = "1"] = process.argv.slice(2);

/** A short history, so that it is folded constantly, and kills occur during folds as well. */
const HISTORY_REVISIONS = 100;

const store = await openLevelStore({
  dir,
  clock: systemClock,
  historyRevisions: HISTORY_REVISIONS,
  ballastBytes: 4096,
});
// The cache would otherwise be written at exit, which never happens.
flushCompileCache();
writeSync(1, "ready\n");
await Promise.all(Array.from({ length: Number(writers) }, (_, writer) => write(writer)));

async function write(writer: number): Promise<void> {
  const [left, right] = [`w/${writer}/left`, `w/${writer}/right`];
  const last = await store.get(left);
  let sequence = last === undefined ? 0 : Number(Buffer.from(last.value).toString().trim());
  let modRevision = last?.modRevision ?? 0;
  for (;;) {
    sequence++;
    // The size varies, so that half of one value never fits over another.
    const value = Buffer.from(String(sequence).padEnd(8 + ((sequence * 131) % 2000)));
    const { succeeded, revision } = await store.txn(
      [{ type: "mod-revision", key: left, revision: modRevision }],
      [
        { type: "put", key: left, value },
        { type: "put", key: right, value },
      ],
    );
    if (!succeeded) throw new Error(`writer ${writer} lost its key at ${modRevision}`);
    modRevision = revision;
    writeSync(1, `${writer} ${sequence} ${revision}\n`);
  }
}
