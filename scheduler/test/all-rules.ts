import { afterEach } from "node:test";

/**
 * Runs the tests of the scheduler's rules in one process, the fast ones first, and exits with 1 at the first failure: a
 * mutant is then detected, and further results don't matter.
 */
afterEach((context) => {
  if ("passed" in context && !context.passed) process.exit(1);
});

await import("../src/preempt/preempt.test.ts");
await import("./offered-resources.test.ts");
await import("./against-reference.test.ts");
