import { setTimeout as sleep } from "node:timers/promises";

/** Checks are eager for this long. Later ones leave the processor to the programs that the test waits for. */
const EAGER_MS = 50;
const EVERY_MS = 5;

/** Lets everything run that can run without waiting for the world outside. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Waits until it holds; a test's own time limit ends the wait, and this one names what was waited for. */
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

/** Collects everything until the end of the iteration. */
export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
