import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FOLDERS } from "../imports/read-sources.ts";

/** A kind of English text in the code base. */
export type TextKind = "doc-comment" | "comment" | "string" | "test-title" | "docs";

/** A text for human readers. */
export interface Text {
  /** The path relative to the root of the repository. */
  readonly path: string;
  /** The first line of the text, from 1. */
  readonly line: number;
  readonly kind: TextKind;
  /** The text without comment marks and quotes. Its lines are joined with spaces. */
  readonly text: string;
}

interface Token {
  readonly type: "block" | "line" | "string" | "regex";
  readonly begin: number;
  readonly end: number;
}

const TOKENS =
  /(?<block>\/\*[\s\S]*?\*\/)|(?<line>\/\/[^\n]*)|(?<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(?<regex>(?<=[=(,:!&|?{};\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/[a-z]*)/g;
// A `#` that begins a line or follows a space, outside of quotes.
const HASH_COMMENT = /^(?:[^#"'\n]|"[^"\n]*"|'[^'\n]*'|(?<=\S)#)*?(?<=^|\s)#(?!!)(?<text>.*)$/;
const YAML_VALUE = /^\s*(?:- )?[\w.-]+: +(?!["'|>{[&*])(?<text>.*)$|^\s*(?:- )?[\w.-]+: +"(?<quoted>[^"]*)"/;
const TEST_CALL = /\b(?:test|it|describe|suite)(?:\.\w+)?\(\s*$/;
// Shorter strings are identifiers, keys and event names.
const PROSE = /\S+\s+\S+\s+\S+/;
const MARKDOWN_CODE = /^```[\s\S]*?^```|`[^`\n]*`/gm;

// Contracts by other authors are not checked.
const OWN_CONTRACTS = "proto/forage/**/*.proto";
const SETTINGS = ["{systemd,examples,.github}/**/*.{yaml,yml,service,conf}", "proto/*.yaml"];
const SCRIPTS = [
  "hack/{up,down,lab,test,install,forage,package}",
  "hack/**/*.sh",
  "hack/packaging/scripts/*",
];

/** Reads the texts of all sources, tests, settings, scripts and pages of the repository. */
export function readTexts(root: string): readonly Text[] {
  const find = (pattern: string) =>
    globSync(pattern, { cwd: root }).filter((path) => !/(^|\/)(node_modules|gen|dist)\//.test(path));
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  // The rules and their tests contain the words that they find.
  const sources = FOLDERS.flatMap((folder) => find(`${folder}/**/*.{ts,tsx}`)).filter(
    (path) => !path.includes("checks/language-rules"),
  );
  const pages = [...find("docs/**/*.md"), ...find("*.md")];
  const hashed = [...SETTINGS, ...SCRIPTS].flatMap(find);
  return [
    ...sources.sort().flatMap((path) => scanSourceTexts(path, read(path))),
    ...find(OWN_CONTRACTS).flatMap((path) => scanContractTexts(path, read(path))),
    ...hashed.flatMap((path) => scanHashTexts(path, read(path))),
    ...pages.sort().flatMap((path) => scanMarkdownTexts(path, read(path))),
  ];
}

/** Returns the comments, prose strings and test titles of a TypeScript file. */
export function scanSourceTexts(path: string, source: string): readonly Text[] {
  const lineAt = lineCounter(source);
  const tokens = [...source.matchAll(TOKENS)].map(toToken);
  const texts: Text[] = [];
  for (const [index, { type, begin, end }] of tokens.entries()) {
    const raw = source.slice(begin, end);
    const line = lineAt(begin);
    if (type === "block") {
      texts.push({
        path,
        line,
        kind: raw.startsWith("/**") ? "doc-comment" : "comment",
        text: commentText(raw),
      });
    } else if (type === "line") {
      const previous = tokens[index - 1];
      const text = raw.slice(2).trim();
      const last = texts.at(-1);
      // Comments on consecutive lines are one text.
      if (
        previous?.type === "line" &&
        last &&
        source.slice(previous.end, begin).trim() === "" &&
        lineAt(previous.begin) === line - 1
      ) {
        texts[texts.length - 1] = { ...last, text: `${last.text} ${text}` };
      } else texts.push({ path, line, kind: "comment", text });
    } else if (type === "string") {
      const text = raw.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, "X");
      const title = TEST_CALL.test(source.slice(Math.max(0, begin - 40), begin));
      if (title) texts.push({ path, line, kind: "test-title", text });
      else if (PROSE.test(text)) texts.push({ path, line, kind: "string", text });
    }
  }
  return texts;
}

/** Returns the comments of a .proto file. Those above a declaration are doc comments. */
export function scanContractTexts(path: string, source: string): readonly Text[] {
  const lines = source.split("\n");
  return scanSourceTexts(path, source).flatMap((text) => {
    if (text.kind !== "comment") return [];
    const isTrailing = !lines[text.line - 1]?.trimStart().startsWith("/");
    return [{ ...text, kind: isTrailing ? "comment" : "doc-comment" }];
  });
}

/** Returns the comments of a script, a unit or a YAML file, and the prose among a YAML file's values. */
export function scanHashTexts(path: string, source: string): readonly Text[] {
  const texts: Text[] = [];
  for (const [index, content] of source.split("\n").entries()) {
    const line = index + 1;
    const comment = HASH_COMMENT.exec(content)?.groups?.text?.trim();
    const last = texts.at(-1);
    const ofPrevious = last?.kind === "comment" && content.trimStart().startsWith("#");
    if (comment && ofPrevious && last.line + last.text.split("\n").length === line)
      texts[texts.length - 1] = { ...last, text: `${last.text}\n${comment}` };
    else if (comment) texts.push({ path, line, kind: "comment", text: comment });
    const value = /\.ya?ml$/.test(path) ? YAML_VALUE.exec(content)?.groups : undefined;
    const text = value?.text ?? value?.quoted ?? "";
    if (PROSE.test(text) && !text.startsWith("#")) texts.push({ path, line, kind: "string", text });
  }
  return texts.map((text) => ({ ...text, text: text.text.replaceAll("\n", " ") }));
}

/** Returns a TypeScript source of the same length in which comments, strings and regular expressions are spaces. */
export function blankTexts(source: string): string {
  return source.replaceAll(TOKENS, (text) => text.replaceAll(/[^\n]/g, " "));
}

/** Returns the paragraphs, list items and table rows of a Markdown file, without code. */
export function scanMarkdownTexts(path: string, source: string): readonly Text[] {
  const prose = source.replaceAll(MARKDOWN_CODE, (code) => code.replaceAll(/[^\n]/g, " "));
  const texts: Text[] = [];
  for (const [index, line] of prose.split("\n").entries()) {
    const text = line.replace(/^[\s>#|*-]+/, "").trim();
    if (text === "") continue;
    texts.push({ path, line: index + 1, kind: "docs", text });
  }
  return texts;
}

function toToken(match: RegExpExecArray | RegExpMatchArray): Token {
  const groups = match.groups ?? {};
  const kind = groups.block ? "block" : groups.line ? "line" : groups.string ? "string" : "regex";
  const begin = match.index ?? 0;
  return { type: kind, begin, end: begin + match[0].length };
}

function commentText(raw: string): string {
  return raw
    .replace(/^\/\*\*?/, "")
    .replace(/\*\/$/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trim())
    .join(" ")
    .trim();
}

function lineCounter(source: string): (offset: number) => number {
  const breaks = [...source.matchAll(/\n/g)].map(({ index }) => index);
  return (offset) => {
    let low = 0;
    let high = breaks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((breaks[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}
