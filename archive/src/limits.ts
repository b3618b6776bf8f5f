/** The limit of nested directories. Each level keeps a handle open. */
export const DEPTH_MAX = 200;
/** The limit of Linux. */
export const PATH_MAX_BYTES = 4096;
/** The size of one read or write. */
export const CHUNK_BYTES = 64 * 1024;
