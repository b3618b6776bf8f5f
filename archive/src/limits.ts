/** The limit of nested directories. Each level holds a handle open. */
export const DEPTH_MAX = 200;
/** Linux takes no longer ones. */
export const PATH_MAX_BYTES = 4096;
/** The size of one read or write. */
export const CHUNK_BYTES = 64 * 1024;
