import { lockDirectory } from "@forage/identity/directory-lock";

/** Locks the data directory for this process until it ends. Rejects if another agent has locked it. */
export async function holdDataDirectory(dataDir: string): Promise<void> {
  const lock = await lockDirectory(dataDir);
  if (lock === undefined) throw new Error(`another agent uses ${dataDir}`);
}
