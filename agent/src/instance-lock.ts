import { lockDirectory } from "@forage/identity/directory-lock";

/** Takes the data directory for this process until it ends; rejects if another agent has it. */
export async function holdDataDirectory(dataDir: string): Promise<void> {
  const lock = await lockDirectory(dataDir);
  if (lock === undefined) throw new Error(`another agent uses ${dataDir}`);
}
