import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { fencesOf } from "../lib/doc-fences.ts";
import { anchorOf } from "../site/anchor.ts";

const root = join(import.meta.dirname, "..", "..");
const pages = [...globSync("*.md", { cwd: root }), ...globSync("docs/**/*.md", { cwd: root })].sort();
const read = (page: string) => readFileSync(join(root, page), "utf8");

test("every link of a page leads to an existing file and heading of the repository", () => {
  const broken = pages.flatMap((page) =>
    [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => {
      if (/^[a-z]+:/.test(link)) return [];
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : relative(root, join(root, dirname(page), path));
      if (!existsSync(join(root, target))) return [`${page}: ${link}: the file doesn't exist`];
      if (anchor === undefined || !target.endsWith(".md")) return [];
      return anchorsOf(read(target)).has(anchor) ? [] : [`${page}: ${link}: the heading doesn't exist`];
    }),
  );
  assert.deepEqual(broken, []);
});

test("every decision has a context, a decision and consequences, and is in the index", () => {
  const index = read("docs/decisions/README.md");
  const decisions = pages.filter((page) => /^docs\/decisions\/(?!README)/.test(page));
  for (const page of decisions) {
    const text = read(page);
    const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    const [title = ""] = text.split("\n");
    assert.deepEqual(headings.slice(0, 3), ["Context", "Decision", "Consequences"], page);
    assert.match(text, /^Status: (?:accepted|replaced by \[.*\]\(.*\))\.$/m, page);
    assert.ok(
      index.includes(`- [${title.slice(2)}](${page.split("/").at(-1)})`),
      `${page} is not in the index`,
    );
  }
});

test("no page has text that the site would render as a tag or a template, which can break its build", () => {
  const broken = pages.flatMap((page) =>
    [...withoutCode(read(page)).matchAll(/<(?!br>|https?:)[A-Za-z/][^\s>]*>?|\{\{/g)].map(
      ([text]) => `${page}: ${text}`,
    ),
  );
  assert.deepEqual(broken, []);
});

test("every diagram has a type that mermaid knows, and balanced brackets", () => {
  const pictures = pages
    .flatMap((page) => fencesOf(page, read(page)))
    .filter(({ language }) => language === "mermaid");
  assert.ok(pictures.length > 8);
  for (const { page, line, text } of pictures) {
    const where = `${page}:${line}`;
    assert.match(text, /^(?:flowchart (?:LR|TB)|sequenceDiagram|stateDiagram-v2)\n/, where);
    const marks = text.replaceAll(/"[^"\n]*"/g, "").replaceAll(/[^[\](){}]/g, "");
    assert.equal(unpaired(marks), "", where);
    const opened = text.match(/^ *subgraph /gm)?.length ?? 0;
    assert.equal(text.match(/^ *end$/gm)?.length ?? 0, opened, where);
  }
});

test("code that how-tos quote is in the sources", () => {
  const sources = globSync("{coordinator/src,agent/src,sim,hack/e2e}/**/*.ts", { cwd: root })
    .filter((path) => !path.includes("node_modules"))
    .map(read)
    .join("\n")
    .replaceAll(/^ +/gm, "");
  const missing = pages
    .filter((page) => page.startsWith("docs/how-to/"))
    .flatMap((page) => fencesOf(page, read(page)))
    .filter(({ language }) => language === "ts")
    .flatMap(({ page, text }) => text.split("\n").map((line) => `${page}: ${line.trim()}`))
    .filter((line) => !sources.includes(line.slice(line.indexOf(": ") + 2)));
  assert.deepEqual(missing, []);
});

/** Returns the brackets that remain after all pairs are removed. */
function unpaired(brackets: string): string {
  const fewer = brackets.replaceAll(/\[\]|\(\)|\{\}/g, "");
  return fewer === brackets ? brackets : unpaired(fewer);
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```|`[^`\n]*`/gm, (code) => code.replaceAll(/[^\n]/g, " "));
}

/** Returns the anchors that renderers such as GitHub's make of a page's headings. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...text.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.*)$/gm)];
  return new Set(headings.map(([, heading = ""]) => anchorOf(heading)));
}
