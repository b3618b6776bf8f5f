import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { InputStamps } from "./input-stamps.ts";

export interface PageOptions {
  readonly root: string;
  /** The script of the page, relative to the root. `index.html` is in the same directory. */
  readonly entry: string;
  /** The file to write. */
  readonly path: string;
  /** Records the files that the page is built from. */
  readonly inputs: InputStamps;
}

interface PageFile {
  readonly type: string;
  /** The content, compressed with gzip, in base64. */
  readonly gzip: string;
}

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
};

/**
 * Builds a page for browsers into one JSON file that contains each script and style sheet with its type, compressed.
 * Parts that the page loads later are separate entries. `{{hash}}` in `index.html` becomes a hash of all files, so
 * browsers can cache them.
 */
export async function buildPage({ root, entry, path, inputs }: PageOptions): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { app: entry },
    outdir: join(root, "dist", "page"),
    bundle: true,
    write: false,
    splitting: true,
    format: "esm",
    platform: "browser",
    target: ["chrome120", "firefox121", "safari17.2"],
    jsx: "automatic",
    jsxImportSource: "preact",
    chunkNames: "[name]-[hash]",
    minify: true,
    legalComments: "linked",
    plugins: [inputs.plugin()],
    logLevel: "error",
  });
  const files: Record<string, PageFile> = {};
  const hash = createHash("sha256");
  for (const file of outputFiles) {
    const name = relative(join(root, "dist", "page"), file.path);
    hash.update(name).update(file.contents);
    files[name] = packed(name, file.contents);
  }
  const indexPath = join(dirname(entry), "index.html");
  inputs.note(indexPath);
  const index = readFileSync(join(root, indexPath), "utf8");
  files["index.html"] = packed("index.html", index.replaceAll("{{hash}}", hash.digest("hex").slice(0, 16)));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(files));
}

function packed(name: string, content: string | Uint8Array): PageFile {
  const type = TYPES[name.slice(name.lastIndexOf("."))] ?? "application/octet-stream";
  return { type, gzip: gzipSync(content, { level: 9 }).toString("base64") };
}
