/** A file system's room, for those who are not root. */
export interface DiskSpace {
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** 0 where the file system has no fixed number of them. */
  readonly totalInodes: number;
  readonly availableInodes: number;
}

export interface DiskPressure {
  readonly pressure: boolean;
  /** One word, then a sentence. */
  readonly reason: "DiskHasRoom" | "DiskFull" | "InodesUsedUp";
  readonly message: string;
}

/** The share of the disk that is kept free by default. It is bounded, so that large disks don't keep much room idle. */
const BYTES_SHARE = 0.05;
const BYTES_MOST = 2 * 2 ** 30;
const INODES_SHARE = 0.05;
/** Pressure ends this much above where it begins, so that it doesn't come and go with each log line. */
const CLEAR_FACTOR = 1.5;

/** `reserveBytes` are the operator's. */
export function diskPressure(space: DiskSpace, before: boolean, reserveBytes?: number): DiskPressure {
  const factor = before ? CLEAR_FACTOR : 1;
  // A reserve that is as large as the disk would never be met again.
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
