/** The descriptor under which the container's root directory is handed over to a process of the agent's own program. */
export const ROOT_DESCRIPTOR = 3;

/** The prefix of lines about skipped files. */
export const REMARK = "- ";
/** Before the reason of a failure, on the last line. */
export const FAILURE = "! ";
