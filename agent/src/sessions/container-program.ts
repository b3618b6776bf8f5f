/** The descriptor by which the container's root directory is passed to a process of the agent's own program. */
export const ROOT_DESCRIPTOR = 3;

/** The prefix of lines about skipped files. */
export const REMARK = "- ";
/** The prefix of the last line if it gives the reason of a failure. */
export const FAILURE = "! ";
