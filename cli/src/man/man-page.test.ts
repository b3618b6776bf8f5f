import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { loadProgram } from "../commands/program.ts";
import { manPages } from "./man-page.ts";

test("creates a page for every command with its synopsis, its options and its parent commands", async () => {
  const pages = manPages(await loadProgram());
  const page = pages.find(({ name }) => name === "forage-node-drain");
  assert.match(page?.text ?? "", /^\.TH "FORAGE-NODE-DRAIN" "1"/);
  assert.match(page?.text ?? "", /\.B forage node drain \[options\] NODE/);
  assert.match(page?.text ?? "", /\\-\\-wait/);
  assert.match(page?.text ?? "", /\\fBforage\\-node\\fR\(1\)/);
  assert.equal(new Set(pages.map(({ name }) => name)).size, pages.length);
});

test("escapes text that man would interpret as commands", () => {
  const run = async (): Promise<never> => assert.fail("not run");
  const details = ".dots and \\ stay\n'quoted too'";
  const program = groupCommands("forage", "Run", [
    defineCommand({ name: "odd", summary: "Odd", details, run }),
  ]);
  const text = manPages(program)[1]?.text ?? "";
  assert.match(text, /^\\&\.dots and \\e stay$/m);
  assert.match(text, /^\\&'quoted too'$/m);
});

const withoutGroff = spawnSync("groff", ["--version"]).error === undefined ? false : "groff is not installed";

test("creates pages that groff accepts without warnings", { skip: withoutGroff }, async () => {
  const all = manPages(await loadProgram())
    .map(({ text }) => text)
    .join("");
  const { stderr } = spawnSync("groff", ["-man", "-Tutf8", "-ww", "-z"], { input: all, encoding: "utf8" });
  assert.equal(stderr, "");
});
