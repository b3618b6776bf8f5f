import type { WorkspaceInitializer } from "@forage/proto/content-service-api/initializer";

/**
 * A snapshot URL in an initializer. A missing prebuild falls back to Git; a missing snapshot is an
 * error.
 */
export interface NamedSnapshot {
  readonly url: string;
  readonly required: boolean;
}

/** Returns the snapshot URLs in the initializer. */
export function snapshotUrlsOf(initializer: WorkspaceInitializer | undefined): readonly NamedSnapshot[] {
  const spec = initializer?.spec;
  switch (spec?.$case) {
    case "snapshot":
      return [{ url: spec.value.snapshot, required: true }];
    case "prebuild": {
      const url = spec.value.prebuild?.snapshot ?? "";
      return url === "" ? [] : [{ url, required: spec.value.git.length === 0 }];
    }
    case "composite":
      return spec.value.initializer.flatMap(snapshotUrlsOf);
    default:
      return [];
  }
}
