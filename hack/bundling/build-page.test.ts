import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { bundlePrograms } from "./bundle-programs.ts";

test("a page is built into one file with its scripts and styles, and rebuilt only after a change", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-page-"));
  t.after(() => rmSync(root, { recursive: true }));
  const write = (name: string, text: string): void => writeFileSync(join(root, "page", name), text);
  mkdirSync(join(root, "page"));
  write(
    "main.tsx",
    'import "./style.css";\nvoid import("./later.ts").then(({ word }) => console.log(word));',
  );
  write("later.ts", 'export const word: string = "later";');
  write("style.css", "body { color: red }");
  write("index.html", '<script src="assets/{{hash}}/app.js"></script>{{nonce}}');
  const options = { root, outDir: join(root, "dist"), programs: { page: "page/main.tsx" } };
  assert.deepEqual((await bundlePrograms(options)).built, ["page"]);
  const files = () => {
    const stored = JSON.parse(readFileSync(join(root, "dist", "page.json"), "utf8")) as Record<
      string,
      { readonly type: string; readonly gzip: string }
    >;
    return new Map(
      Object.entries(stored).map(([name, { gzip }]) => [
        name,
        gunzipSync(Buffer.from(gzip, "base64")).toString(),
      ]),
    );
  };
  const first = files();
  const names = [...first.keys()].map((name) => name.replace(/-[A-Z0-9]{8}\./, "-*.")).sort();
  assert.deepEqual(names, ["app.css", "app.js", "index.html", "later-*.js"]);
  assert.match(
    first.get("index.html") ?? "",
    /^<script src="assets\/[0-9a-f]{16}\/app\.js"><\/script>\{\{nonce\}\}$/,
  );
  assert.deepEqual((await bundlePrograms(options)).unchanged, ["page"]);
  write("style.css", "body { color: green }");
  assert.deepEqual((await bundlePrograms(options)).built, ["page"]);
  assert.notEqual(files().get("index.html"), first.get("index.html"), "browsers load the files again");
  write("index.html", "another page");
  assert.deepEqual((await bundlePrograms(options)).built, ["page"]);
  assert.equal(files().get("index.html"), "another page");
});

/** The limit of what a browser loads to show the dashboard. */
const MAX_PAGE_BYTES = 150_000;

test("the dashboard loads at most 150 kB to start: terminals and the converter of manifests load later", async (t) => {
  const outDir = mkdtempSync(join(tmpdir(), "forage-dashboard-"));
  t.after(() => rmSync(outDir, { recursive: true }));
  const root = join(import.meta.dirname, "../..");
  await bundlePrograms({ root, outDir, programs: { dashboard: "coordinator/dashboard/main.tsx" } });
  const stored = JSON.parse(readFileSync(join(outDir, "dashboard.json"), "utf8")) as Readonly<
    Record<string, { readonly gzip: string }>
  >;
  const packed = new Map(
    Object.entries(stored).map(([name, { gzip }]) => [name, Buffer.from(gzip, "base64")]),
  );
  const first = new Set(["index.html", "app.css", "app.js"]);
  for (const name of first) {
    const text = gunzipSync(packed.get(name) ?? assert.fail(name)).toString();
    // Imports with parentheses are loaded when they are needed.
    for (const [, needed = ""] of text.matchAll(/\b(?:import|from)\s*"\.\/([^"]+)"/g)) first.add(needed);
  }
  const sizes = [...first].map((name) => [name, packed.get(name)?.byteLength ?? Number.NaN] as const);
  const sum = sizes.reduce((all, [, size]) => all + size, 0);
  assert.ok(sum <= MAX_PAGE_BYTES, `${sum} bytes: ${JSON.stringify(sizes)}`);
  const later = [...packed.keys()].filter((name) => !first.has(name) && name.endsWith(".js"));
  assert.ok(
    later.some((name) => name.startsWith("terminal")) &&
      later.some((name) => name.startsWith("plan-manifest")),
    later.join(),
  );
  t.diagnostic(`${sum} bytes before the page is there: ${JSON.stringify(sizes)}`);
});
