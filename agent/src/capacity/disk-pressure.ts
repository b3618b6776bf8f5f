/** The space of a file system for users other than root. */
export interface DiskSpace {
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** The number of inodes. 0 if the file system has no fixed number. */
  readonly totalInodes: number;
  readonly availableInodes: number;
}

export interface DiskPressure {
  readonly pressure: boolean;
  /** The reason in CamelCase, followed by a sentence in `message`. */
  readonly reason: "DiskHasRoom" | "DiskFull" | "InodesUsedUp";
  readonly message: string;
}

/**
 * The share of the disk that is kept free by default. It is bounded, so that large disks don't keep too much space
 * unused.
 */
const BYTES_SHARE = 0.05;
const BYTES_MOST = 2 * 2 ** 30;
const INODES_SHARE = 0.05;
/**
 * The factor between the threshold that starts pressure and the one that ends it, so that log lines don't cause
 * flapping.
 */
const CLEAR_FACTOR = 1.5;

/** Reports whether the disk is under pressure. `reserveBytes` is the operator's setting. */
export function diskPressure(space: DiskSpace, before: boolean, reserveBytes?: number): DiskPressure {
  const factor = before ? CLEAR_FACTOR : 1;
  // A reserve as large as the disk could never be reached again.
  const bytesNeeded = Math.min(
    (reserveBytes ?? Math.min(space.totalBytes * BYTES_SHARE, BYTES_MOST)) * factor,
    space.totalBytes,
  );
  if (space.availableBytes < bytesNeeded) {
    const message = `${toMebibytes(space.availableBytes)} of disk are left, ${toMebibytes(bytesNeeded)} are needed`;
    return { pressure: true, reason: "DiskFull", message };
  }
  const inodesNeeded = Math.floor(space.totalInodes * INODES_SHARE * factor);
  if (space.availableInodes < inodesNeeded) {
    const message = `${space.availableInodes} inodes are left, ${inodesNeeded} are needed`;
    return { pressure: true, reason: "InodesUsedUp", message };
  }
  return {
    pressure: false,
    reason: "DiskHasRoom",
    message: `${toMebibytes(space.availableBytes)} of disk are left`,
  };
}

function toMebibytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)}Mi`;
}
