import { readFileSync } from "node:fs";
import { join } from "node:path";
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
 * Returns a function that finds the configuration file that a fence is a part of: the one that has all of the fence's keys. If both
 * have them, it is the one that the text above mentions last. Undefined: the fence is no part of either.
 *
 * @param references the reference page of each file
 */
export function settingsFiles(
  references: ReadonlyMap<SettingsFile, string>,
): (fence: Fence) => SettingsFile | undefined {
  const known = [...references].map(([file, page]) => [file, topLevelKeys(page)] as const);
  return ({ language, text, file }) => {
    if (language !== "yaml" || /^(?:---|resources:|name:)/m.test(text)) return undefined;
    const keys = [...dedented(text).matchAll(/^(\w+):/gm)].map(([, key = ""]) => key);
    const found = known.filter(([, all]) => keys.length > 0 && keys.every((key) => all.has(key)));
    return (found.find(([name]) => name === file) ?? found[0])?.[0];
  };
}

/** Returns the keys at the top of a file by the rows of its reference. */
function topLevelKeys(page: string): ReadonlySet<string> {
  return new Set([...page.matchAll(/^\| `(\w+)/gm)].map(([, key = ""]) => key));
}

function dedented(text: string): string {
  const [indent = ""] = /^ */.exec(text) ?? [];
  return text.replaceAll(new RegExp(`^${indent}`, "gm"), "");
}
