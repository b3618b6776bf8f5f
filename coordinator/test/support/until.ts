import { setTimeout as sleep } from "node:timers/promises";

/**
 * The time for which conditions are checked without delay. Later checks leave the processor to the
 * programs for which the test waits.
 */
const EAGER_MS = 50;
const EVERY_MS = 5;

/** Lets all pending work run that does not wait for I/O. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Waits until the condition holds. A test's own time limit bounds the wait, and this limit names
 * the condition.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const startMs = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - startMs;
    if (waitedMs > limitMs) throw new Error(`waited ${limitMs} ms for: ${what}`);
    await (waitedMs < EAGER_MS ? settled() : sleep(EVERY_MS));
  }
}

/** Collects all items of the iteration. */
export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
