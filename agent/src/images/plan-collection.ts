/** An image stored on this host. */
export interface StoredImage {
  /** The full reference, including the registry. */
  readonly reference: string;
  /** The wall-clock time of the image's last use, or the current time if it is in use. */
  readonly lastUsedMs: number;
  /** Whether an assigned pod names the image, or a container was created from it, running or not. */
  readonly inUse: boolean;
  /** Whether the image was pushed to this host, so that it may be in no registry. */
  readonly pushed?: boolean;
}

export interface CollectionLimits {
  /** The time after which an unused image is removed. 0 disables removal by age. */
  readonly unusedMs: number;
  /**
   * Thresholds for the use of the images' file system, in percent. Above `high`, images are removed until the use is at
   * `low`.
   */
  readonly highPercent: number;
  readonly lowPercent: number;
}

export interface CollectionPlan {
  readonly expired: readonly string[];
  /** Images that may be removed to free space, in order: those unused longest come first. */
  readonly spare: readonly string[];
}

/**
 * The shortest time without use before an image may be removed. It may have been pulled just before its pod is
 * assigned, and clocks jump a little.
 */
export const SPARE_AGE_LEAST_MS = 300_000;

/**
 * Plans which images to remove. Images in use are never removed. Pushed images are not removed by age, and are removed
 * last for space. A record from the future counts as used now. Pure.
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
