import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type Fence, readFences } from "./doc-fences.ts";

/** A configuration file whose reference page lists all keys. */
export type SettingsFile = "agent.yaml" | "coordinator.yaml";

const ROOT = join(import.meta.dirname, "../..");
const REFERENCES: Readonly<Record<SettingsFile, string>> = {
  "agent.yaml": "docs/reference/agent-settings.md",
  "coordinator.yaml": "docs/reference/coordinator.md",
};
const FILES = ["agent.yaml", "coordinator.yaml"] as const;

/** Returns the examples of a configuration file in all pages. */
export function settingsInDocs(file: SettingsFile): readonly Fence[] {
  const fileOf = settingsFiles(
    new Map(FILES.map((name) => [name, readFileSync(join(ROOT, REFERENCES[name]), "utf8")])),
  );
  return readFences(ROOT).filter((fence) => fileOf(fence) === file);
}

/**
 * Returns a function that finds the configuration file of a fence: the one that has all of the fence's keys. If both
 * have them, it is the last one in the text above. It returns `undefined` if the fence belongs to neither.
 *
 * @param references the reference page of each file
 */
export function settingsFiles(
  references: ReadonlyMap<SettingsFile, string>,
): (fence: Fence) => SettingsFile | undefined {
  const known = [...references].map(([file, page]) => [file, keysOf(page)] as const);
  return ({ language, text, file }) => {
    if (language !== "yaml" || /^(?:---|resources:|name:)/m.test(text)) return undefined;
    const paths = pathsOf(parse(text));
    const found = known.filter(([, keys]) => paths.length > 0 && paths.every((path) => isKnown(path, keys)));
    return (found.find(([name]) => name === file) ?? found[0])?.[0];
  };
}

/** Returns the keys in the rows of a reference that have no further rows for the keys below them. */
function keysOf(page: string): readonly string[] {
  const keys = [...page.matchAll(/^\| `([\w.]+)/gm)].map(([, key = ""]) => key);
  return keys.filter((key) => !keys.some((other) => other.startsWith(`${key}.`)));
}

/** Returns the keys of a mapping, and those of the mappings in it: `http`, `http.listen`. */
function pathsOf(value: unknown, depth = 2): readonly string[] {
  if (depth === 0 || typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, nested]) => [
    key,
    ...pathsOf(nested, depth - 1).map((path) => `${key}.${path}`),
  ]);
}

/**
 * Reports whether a path is a known key. A key without rows below it may contain a mapping with the operator's own
 * keys.
 */
function isKnown(path: string, keys: readonly string[]): boolean {
  return keys.some((key) => key === path || key.startsWith(`${path}.`) || path.startsWith(`${key}.`));
}
