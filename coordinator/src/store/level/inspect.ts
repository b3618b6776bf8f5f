import { Findings, type Head, type Inspection } from "../format/findings.ts";
import { type Database, type DatabaseSnapshot, readDatabase } from "./database.ts";

/** Reads the whole database, and checks its consistency, including with the head in the HEAD file. */
export async function inspect(
  db: Database,
  head: Head | undefined,
  snapshot?: DatabaseSnapshot,
): Promise<Inspection> {
  const found = new Findings();
  try {
    for await (const pairs of readDatabase(db, snapshot)) {
      for (const [dbKey, value] of pairs) found.add(dbKey, value);
    }
  } catch (error) {
    found.report(error);
  }
  found.conclude(head);
  return found;
}
