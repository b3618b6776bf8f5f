/** Each level holds a handle open. */
export const DEPTH_MAX = 200;
/** Linux takes no longer ones. */
export const PATH_MAX_BYTES = 4096;
/** What is read and written at once. */
export const CHUNK_BYTES = 64 * 1024;
