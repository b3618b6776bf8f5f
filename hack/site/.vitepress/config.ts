import { cpSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { anchorOf } from "../anchor.ts";
import { makeSidebar } from "../sidebar.ts";

const root = join(import.meta.dirname, "../../..");
const docs = join(root, "docs");

// Compiled pages import packages of this folder, which they can find only below it.
const pages = join(import.meta.dirname, "../.cache/pages");
rmSync(pages, { recursive: true, force: true });
cpSync(docs, pages, { recursive: true });
// On code hosts, a folder's page is its README.md.
for (const page of globSync("**/*.md", { cwd: pages })) {
  const path = join(pages, page);
  writeFileSync(path, readFileSync(path, "utf8").replaceAll(/(\]\([^)\s]*)README\.md/g, "$1index.md"));
  renameSync(path, path.replace(/README\.md$/, "index.md"));
}

interface Token {
  readonly info: string;
  readonly content: string;
}
type Rule = (tokens: readonly Token[], index: number, ...rest: readonly unknown[]) => string;
interface Markdown {
  readonly renderer: { readonly rules: { fence?: Rule; code_inline?: Rule } };
}

export default {
  title: "Forage",
  description: "Containers on a fleet of bare-metal and edge hosts under one coordinator",
  lang: "en",
  srcDir: pages,
  outDir: join(root, "dist/docs"),
  cacheDir: join(import.meta.dirname, "../.cache/vitepress"),
  head: [["link", { rel: "icon", href: "data:," }]],
  markdown: {
    anchor: { slugify: anchorOf },
    toc: { slugify: anchorOf },
    config: (markdown: Markdown) => {
      drawDiagrams(markdown);
      leaveBraces(markdown);
    },
  },
  themeConfig: {
    sidebar: makeSidebar((page) => readFileSync(join(pages, page.replace("README", "index")), "utf8")),
    outline: [2, 3],
    search: { provider: "local" },
  },
  // The chunk with the search index is large, and loaded when the search is opened.
  vite: { publicDir: false, build: { chunkSizeWarningLimit: 4096 } },
  /** Copies the files outside `docs/` that pages link to. */
  buildEnd: ({ outDir }: { readonly outDir: string }) =>
    cpSync(join(root, "examples"), join(outDir, "examples"), { recursive: true }),
};

/** Renders code blocks of the language `mermaid` with the theme's component that draws them. */
function drawDiagrams(markdown: Markdown): void {
  const { rules } = markdown.renderer;
  const original = rules.fence;
  rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token?.info.trim() === "mermaid")
      return `<Diagram source="${encodeURIComponent(token.content)}" />\n`;
    return original?.(tokens, index, ...rest) ?? "";
  };
}

/** Leaves braces in code unchanged. Otherwise the site's templates would evaluate the text between two of them. */
function leaveBraces(markdown: Markdown): void {
  const { rules } = markdown.renderer;
  const original = rules.code_inline;
  rules.code_inline = (...parameters) => (original?.(...parameters) ?? "").replace(/^<code/, "<code v-pre");
}
