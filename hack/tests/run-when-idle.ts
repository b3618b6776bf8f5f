import { spawnSync } from "node:child_process";
import { setPriority } from "node:os";
import { pid } from "node:process";

/**
 * Loaded into the process of each test file that only computes and runs beside others. The file, and all processes that
 * it starts, get only the processor time that the others leave.
 */
const { status } = spawnSync("chrt", ["--all-tasks", "--idle", "--pid", "0", `${pid}`]);
// The machine lacks util-linux, or a container's profile forbids the call.
if (status !== 0) setPriority(19);
