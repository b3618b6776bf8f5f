import { createHash } from "node:crypto";

interface Encoder<T> {
  encode(message: T): { finish(): Uint8Array };
}

/**
 * Returns a hash of the message that doesn't depend on the order in which maps were filled. Protobuf encodes map entries in
 * that order, so they are sorted first.
 */
export function hashMessage<T>(type: Encoder<T>, message: T, ...extra: readonly string[]): string {
  const hash = createHash("sha256").update(type.encode(sortMaps(message)).finish());
  for (const text of extra) hash.update("\0").update(text);
  return hash.digest("hex");
}

export function hashLabels(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function sortMaps<T>(value: T): T {
  if (Array.isArray(value)) return value.map(sortMaps) as T;
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sortMaps(inner)])) as T;
}
