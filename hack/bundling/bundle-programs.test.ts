import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bundlePrograms } from "./bundle-programs.ts";
import { writeCodeCache } from "./compile-program.ts";
import { loadCompiled } from "./load-compiled.ts";

test("programs are bundled into one file each, and rebuilt only after a change", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "src"));
  writeFileSync(join(root, "src", "old.cjs"), 'module.exports = require("node:path").basename;');
  writeFileSync(join(root, "src", "lazy.ts"), 'export const word: string = "lazy";');
  const main = 'import name from "./old.cjs";\nconsole.log(name("/a/b"), (await import("./lazy.ts")).word);';
  writeFileSync(join(root, "src", "main.ts"), main);
  const options = {
    root,
    outDir: join(root, "dist"),
    programs: { one: "src/main.ts", two: "src/absent.ts" },
  };
  const output = (): string =>
    execFileSync(process.execPath, [join(root, "dist", "one.mjs")], { encoding: "utf8" });

  assert.deepEqual(await bundlePrograms(options), { built: ["one"], unchanged: [], missing: ["two"] });
  assert.equal(output(), "b lazy\n");
  assert.deepEqual(await bundlePrograms(options), { built: [], unchanged: ["one"], missing: ["two"] });

  writeFileSync(join(root, "src", "lazy.ts"), 'export const word: string = "changed";');
  assert.deepEqual((await bundlePrograms(options)).built, ["one"]);
  assert.equal(output(), "b changed\n");
});

test("a program whose source changes during its build is built again", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "src"));
  const write = (word: string): void =>
    writeFileSync(join(root, "src", "main.ts"), `console.log("${word}");`);
  write("first");
  const programs = { one: "src/main.ts" };
  const options = { root, outDir: join(root, "dist"), programs };
  const compile = async (base: string): Promise<void> => {
    await writeCodeCache(base, []);
    write("changed");
  };
  await bundlePrograms({ ...options, compile: { "src/main.ts": compile } });
  assert.deepEqual((await bundlePrograms(options)).built, ["one"]);
  const output = execFileSync(process.execPath, [join(root, "dist", "one.mjs")], { encoding: "utf8" });
  assert.equal(output, "changed\n");
});

test("a program's text is converted to ASCII, of which node keeps one byte per character, without a change of meaning", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "src"));
  const main =
    'console.log("20°C 🌲".replace(/[+-]?\\d+°/, "warm ").replace(/🌲/u, "tree"), `é` === "\\u00e9");';
  writeFileSync(join(root, "src", "main.ts"), main);
  await bundlePrograms({ root, outDir: join(root, "dist"), programs: { one: "src/main.ts" } });
  const path = join(root, "dist", "one.mjs");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII
  assert.match(readFileSync(path, "utf8"), /^[\x00-\x7f]*$/);
  assert.equal(execFileSync(process.execPath, [path], { encoding: "utf8" }), "warm C tree true\n");
});

test("a compiled program runs from its code cache, and from its source if the cache belongs to another build", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "src"));
  const main = (word: string): string =>
    `import { basename } from "node:path";\nconsole.log(basename("/a/${word}"), process.argv.slice(2).join());`;
  const base = join(root, "dist", "one");
  const options = {
    root,
    outDir: join(root, "dist"),
    programs: { one: "src/main.ts" },
    compile: { "src/main.ts": (path: string) => writeCodeCache(path, ["trial"]) },
  };
  const build = (word: string) => {
    writeFileSync(join(root, "src", "main.ts"), main(word));
    return bundlePrograms(options);
  };
  const output = (): string =>
    execFileSync(process.execPath, [`${base}.mjs`, "x", "y"], { encoding: "utf8" });

  assert.deepEqual((await build("first")).built, ["one"]);
  assert.equal(output(), "first x,y\n");
  assert.equal(loadCompiled(base).fromCache, true);
  assert.deepEqual((await bundlePrograms(options)).unchanged, ["one"]);

  // The other source has the same length, and Node compares only the length.
  const stale = readFileSync(`${base}.cache`);
  await build("other");
  assert.equal(loadCompiled(base).fromCache, true);
  writeFileSync(`${base}.cache`, stale);
  assert.equal(loadCompiled(base).fromCache, false);
  assert.equal(output(), "other x,y\n");
  rmSync(`${base}.cache`);
  assert.equal(output(), "other x,y\n");
});
