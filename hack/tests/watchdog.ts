import { after } from "node:test";
import { openTimers } from "./open-timers.ts";
import { appendProcessorTime, PROCESSOR_TIMES_VARIABLE } from "./processor-times.ts";

/**
 * This module is loaded into the process of each test file. It fails a file whose tests leave something open instead of
 * letting it delay the run, and records the file's processor time.
 */

// The time for children and servers that tests don't wait for to end.
const AFTER_LAST_TEST_MS = Number(process.env.FORAGE_TEST_GRACE_MS ?? 60_000);

after(() => {
  // The timer doesn't keep the process alive. A file that closed everything ended long before.
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(", ");
    const timers = openTimers();
    const detail = timers.length === 0 ? "" : `\ntimers: ${timers.join(", ")}`;
    console.error(
      `still open ${AFTER_LAST_TEST_MS / 1000} s after the last test, so this file is ended: ${open}${detail}`,
    );
    process.exit(1);
  }, AFTER_LAST_TEST_MS).unref();
});

const times = process.env[PROCESSOR_TIMES_VARIABLE];
const [, path] = process.argv;
if (times !== undefined && path !== undefined) {
  // A file may start itself again. The time of that process is part of this one's.
  delete process.env[PROCESSOR_TIMES_VARIABLE];
  process.on("exit", () => appendProcessorTime(times, path));
}
