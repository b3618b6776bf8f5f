import type { WorkspaceInitializer } from "@forage/proto/content-service-api/initializer";
import type { Archive } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../../errors.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { ContentStore } from "../content/content-store.ts";
import { parseSnapshotUrl } from "../content/object-name.ts";
import { snapshotUrlsOf } from "./snapshot-urls.ts";

/**
 * Returns the archives that the initializer refers to, by URL. Throws FAILED_PRECONDITION if a
 * required one is not in the content store.
 */
export async function archivesOf(
  initializer: WorkspaceInitializer | undefined,
  content: ContentStore,
): Promise<Record<string, Archive>> {
  const found: Record<string, Archive> = {};
  for (const { url, required } of snapshotUrlsOf(initializer)) {
    const archive = await archiveOf(url, content);
    if (archive !== undefined) found[url] = archive;
    else if (required)
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        `the content store ${content.name} has no snapshot ${url}: it may not be complete yet, or it was deleted`,
      );
  }
  return found;
}

async function archiveOf(url: string, content: ContentStore): Promise<Archive | undefined> {
  const parsed = parseSnapshotUrl(url);
  if (parsed === undefined || parsed.store !== content.name) return undefined;
  const stored = await content.stat(parsed.object);
  if (stored === undefined) return undefined;
  const { object, sizeBytes, sha256, storedMs } = stored;
  return { object, sizeBytes: BigInt(sizeBytes), sha256, createdAt: toTimestamp(storedMs) };
}
