/**
 * Run by the crash test, which kills it: `crash-writer.ts DIR WRITERS`. Each writer puts two keys of its own in one
 * transaction, again and again, and a line is printed for each acknowledgement: `WRITER SEQUENCE REVISION`.
 */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { systemClock } from "@forage/common/clock";
import { openLevelStore } from "../../src/store/index.ts";

const [dir = "", writers = "1"] = process.argv.slice(2);

/** Little, so that history is folded all the time and kills fall into that too. */
const HISTORY_REVISIONS = 100;

const store = await openLevelStore({
  dir,
  clock: systemClock,
  historyRevisions: HISTORY_REVISIONS,
  ballastBytes: 4096,
});
// It would be written at exit, which never comes.
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
    // The size varies, so a half of one value never fits over another.
    const value = Buffer.from(String(sequence).padEnd(8 + ((sequence * 131) % 2000)));
    const { succeeded, revision } = await store.txn(
      [{ kind: "modRevision", key: left, revision: modRevision }],
      [
        { kind: "put", key: left, value },
        { kind: "put", key: right, value },
      ],
    );
    if (!succeeded) throw new Error(`writer ${writer} lost its key at ${modRevision}`);
    modRevision = revision;
    writeSync(1, `${writer} ${sequence} ${revision}\n`);
  }
}
