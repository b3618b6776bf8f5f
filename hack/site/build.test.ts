import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../lib/run.ts";

const site = import.meta.dirname;
const docs = join(site, "../../docs");
const LIMIT_MS = 600_000;

test("the site has every page, the pictures, and an index for the search", {
  timeout: LIMIT_MS,
}, async (t) => {
  await installPackages();
  const outDir = await mkdtemp(join(tmpdir(), "forage-site-"));
  t.after(() => rm(outDir, { recursive: true, force: true }));
  const vitepress = join(site, "node_modules/vitepress/bin/vitepress.js");
  // Dead links fail the build. It uses the test's own Node.js, because the one on the PATH may be too old.
  const options = { cwd: site, timeoutMs: LIMIT_MS };
  const { stdout, stderr } = await run(process.execPath, [vitepress, "build", "--outDir", outDir], options);
  assert.doesNotMatch(stdout + stderr, /\[plugin|\berror\b/i);

  for (const page of globSync("**/*.md", { cwd: docs })) {
    const built = page.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
    const [, title] = /^# (.+)$/m.exec(readFileSync(join(docs, page), "utf8")) ?? [];
    assert.ok(title, `${page} has a title`);
    const text = textOf(join(outDir, built));
    assert.ok(text.includes(title.replaceAll(/[`*]/g, "")), `${page} has its title`);
  }
  const index = globSync("assets/chunks/*localSearchIndex*.js", { cwd: outDir });
  assert.equal(index.length, 1);
  assert.match(readFileSync(join(outDir, index[0] ?? ""), "utf8"), /Quickstart/);
  const pictures = globSync("pictures/*", { cwd: docs }).map((path) => path.replace(/^.*\/(.+)\.\w+$/, "$1"));
  const assets = globSync("assets/*", { cwd: outDir });
  const isShown = (name: string): boolean => assets.some((asset) => asset.startsWith(`assets/${name}.`));
  assert.ok(pictures.some(isShown), "pictures of pages are among the assets");
});

/** Installs the site's packages, unless those of the lock file are installed. */
async function installPackages(): Promise<void> {
  const installed = join(site, "node_modules/.package-lock.json");
  const lock = join(site, "package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs > statSync(lock).mtimeMs) return;
  const options = ["--prefix", site, "--no-audit", "--no-fund"];
  await run("npm", ["ci", ...options], { timeoutMs: LIMIT_MS });
}

/** Returns the text of the page's elements, with decoded HTML entities. */
function textOf(page: string): string {
  const html = readFileSync(page, "utf8").replaceAll(/<[^>]+>/g, "");
  return html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&");
}
