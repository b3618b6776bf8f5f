import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { bundlePrograms } from "./bundle-programs.ts";

test("a page becomes one file with its scripts and styles, made again only when something changed", async (t) => {
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
