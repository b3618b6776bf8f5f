import { createHash, hash } from "node:crypto";

interface Encoder<T> {
  encode(message: T): { finish(): Uint8Array };
}

/**
 * Returns a hash of the message that doesn't depend on the order in which maps were filled. Protobuf encodes map entries in
 * that order, so they are sorted first.
 */
export function hashMessage<T>(type: Encoder<T>, message: T, ...extra: readonly string[]): string {
  const bytes = type.encode(sortMaps(message)).finish();
  if (extra.length === 0) return hash("sha256", bytes);
  const all = createHash("sha256").update(bytes);
  for (const text of extra) all.update("\0").update(text);
  return all.digest("hex");
}

export function hashLabels(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Returns the value with the keys of all maps sorted. Parts without an unsorted map are not copied. A map can't be
 * distinguished from a message with fields of one type, whose order doesn't matter.
 */
function sortMaps<T>(value: T): T {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) {
    const sorted = value.map(sortMaps);
    return sorted.every((item, i) => item === value[i]) ? value : (sorted as T);
  }
  const parts = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(parts);
  let copy: Record<string, unknown> | undefined;
  for (const key of keys) {
    const sorted = sortMaps(parts[key]);
    if (sorted === parts[key]) continue;
    copy ??= { ...parts };
    copy[key] = sorted;
  }
  const all = copy ?? parts;
  if (isSorted(keys) || !hasOneType(parts, keys)) return all as T;
  return Object.fromEntries(keys.sort().map((key) => [key, all[key]])) as T;
}

function isSorted(keys: readonly string[]): boolean {
  for (let i = 1; i < keys.length; i++) if ((keys[i - 1] ?? "") > (keys[i] ?? "")) return false;
  return true;
}

/** Reports whether all values have the same JavaScript type, as those of a map have. */
function hasOneType(value: Readonly<Record<string, unknown>>, keys: readonly string[]): boolean {
  const first = typeof value[keys[0] ?? ""];
  return keys.every((key) => typeof value[key] === first);
}
