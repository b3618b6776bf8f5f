/** An image that lies here. */
export interface StoredImage {
  /** Full form. */
  readonly reference: string;
  /** Wall clock; an image that is used now has the present time. */
  readonly lastUsedMs: number;
  /** A pod that is assigned here names it, or a container was made from it, running or not. */
  readonly inUse: boolean;
  /** It was pushed to this host, and may be in no registry. */
  readonly pushed?: boolean;
}

export interface CollectionLimits {
  /** An image that has been unused for this time is removed. 0: images are not removed for their age. */
  readonly unusedMs: number;
  /** Used shares of the file system that images lie on, in percent: above `high` images go until it is at `low`. */
  readonly highPercent: number;
  readonly lowPercent: number;
}

export interface CollectionPlan {
  readonly expired: readonly string[];
  /** The images that may be removed next to free space, those unused longest first. */
  readonly spare: readonly string[];
}

/** An image may be pulled just before its pod is assigned, and clocks jump a little. */
export const SPARE_AGE_LEAST_MS = 300_000;

/**
 * Plans which images to remove. Images in use are never removed. Images that were pushed are not removed for their age, and go last.
 * A record from the future counts as used now. Pure.
 */
export function planCollection(
  images: readonly StoredImage[],
  limits: Pick<CollectionLimits, "unusedMs">,
  nowMs: number,
): CollectionPlan {
  const unused = images
    .filter((it) => !it.inUse && nowMs - it.lastUsedMs >= SPARE_AGE_LEAST_MS)
    .sort(
      (a, b) =>
        Number(a.pushed ?? false) - Number(b.pushed ?? false) ||
        a.lastUsedMs - b.lastUsedMs ||
        (a.reference < b.reference ? -1 : 1),
    );
  const isExpired = ({ lastUsedMs, pushed }: StoredImage) =>
    pushed !== true && limits.unusedMs > 0 && nowMs - lastUsedMs >= limits.unusedMs;
  return {
    expired: unused.filter(isExpired).map((it) => it.reference),
    spare: unused.filter((it) => !isExpired(it)).map((it) => it.reference),
  };
}
