import { after } from "node:test";

/** Loaded into each test file's process: what a test left open fails that file by name, and never holds up the run. */

// Ends of children and servers that tests don't wait for.
const AFTER_LAST_TEST_MS = Number(process.env.FORAGE_TEST_GRACE_MS ?? 60_000);

after(() => {
  // Doesn't keep the process alive by itself: a file that closed everything has ended long before.
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(", ");
    console.error(
      `still open ${AFTER_LAST_TEST_MS / 1000} s after the last test, so this file is ended: ${open}`,
    );
    process.exit(1);
  }, AFTER_LAST_TEST_MS).unref();
});
