import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testJournalFiles } from "../../test/journal-files-contract.ts";
import { hostFiles } from "./journal-files.ts";

testJournalFiles("the host's disk", async (t) => {
  const parent = await mkdtemp(join(tmpdir(), "forage-journal-files-"));
  t.after(() => rm(parent, { recursive: true, force: true }));
  return { files: hostFiles, dir: join(parent, "journal", "pods") };
});
