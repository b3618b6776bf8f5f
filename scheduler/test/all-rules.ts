import { afterEach } from "node:test";

/**
 * Runs the tests that know the scheduler's rules in one process, the quick ones first, and exits with 1 at the first that fails:
 * a mutant is caught then, and what the others would find doesn't matter.
 */
afterEach((context) => {
  if ("passed" in context && !context.passed) process.exit(1);
});

await import("../src/preempt/preempt.test.ts");
await import("./offered-resources.test.ts");
await import("./against-reference.test.ts");
