import { spawnSync } from "node:child_process";
import { setPriority } from "node:os";
import { pid } from "node:process";

/**
 * Loaded into the process of each test file that only computes and runs beside others: it gets the processor time that the others
 * leave, as do all processes that it starts.
 */
const { status } = spawnSync("chrt", ["--all-tasks", "--idle", "--pid", "0", `${pid}`]);
// Without util-linux, or where a container's profile forbids it.
if (status !== 0) setPriority(19);
