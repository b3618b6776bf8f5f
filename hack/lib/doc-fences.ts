import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A fenced block of code in a page of the documentation. */
export interface Fence {
  /** Relative to the root. */
  readonly page: string;
  /** The line of the opening fence, from 1. */
  readonly line: number;
  /** The word after the fence, or an empty text. */
  readonly language: string;
  /** The content without the indentation of the fence. */
  readonly text: string;
  /** The last YAML file name in the text above. */
  readonly file: string | undefined;
}

const FENCE = /^( *)```(\S*)\n([\s\S]*?)^ *```$/gm;
const YAML_FILE = /`(?:[^`\s]*\/)?([a-z]+\.yaml)`/g;

/** Reads the fences of the README and of all pages except the decisions, in their order. */
export function readFences(root: string): readonly Fence[] {
  const pages = globSync("{README.md,docs/**/*.md}", { cwd: root }).filter(
    (page) => !page.startsWith("docs/decisions/"),
  );
  return pages.sort().flatMap((page) => fencesOf(page, readFileSync(join(root, page), "utf8")));
}

/** Returns the fences of one page in their order. */
export function fencesOf(page: string, source: string): readonly Fence[] {
  return [...source.matchAll(FENCE)].map(({ index, 1: indent = "", 2: language = "", 3: text = "" }) => {
    const above = source.slice(0, index);
    return {
      page,
      line: above.split("\n").length,
      language,
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      file: [...above.matchAll(YAML_FILE)].at(-1)?.[1],
    };
  });
}

/**
 * Returns the commands of a fence of the language `sh`, or those after a `$` in a fence that includes output. Comments
 * are left out.
 */
export function commandsOf({ language, text }: Fence): readonly string[] {
  const lines = text.replaceAll(/\s*\\\n\s*/g, " ").split("\n");
  const commands =
    language === "console"
      ? lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2))
      : language === "sh"
        ? lines
        : [];
  return commands.map((line) => line.replace(/(^|\s)#.*$/, "").trim()).filter((line) => line !== "");
}
