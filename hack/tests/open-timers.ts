import { queryObjects } from "node:v8";

/**
 * Returns a description of each timer that keeps the process alive: "1000 ms retry". `process.getActiveResourcesInfo`
 * only has their number, so this searches the heap for them, after a full garbage collection.
 */
export function openTimers(): string[] {
  const sample = setTimeout(() => {}, 0);
  clearTimeout(sample);
  const texts = queryObjects(sample.constructor, { format: "summary" });
  return texts.filter((text) => OPEN.every((field) => text.includes(field))).map(describe);
}

/** The fields of a timer that was neither cleared nor called, and keeps the process alive. */
const OPEN = ["_destroyed: false", "Symbol(refed): true"];

function describe(text: string): string {
  const [, delayMs = "?"] = /_idleTimeout: (\d+)/.exec(text) ?? [];
  const [, name = "of a function without a name"] = /_onTimeout: \[Function: ([^\]]+)\]/.exec(text) ?? [];
  return `${delayMs} ms ${name}`;
}
