import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { goArchitecture } from "../lib/architecture.ts";
import { assertArchitecture } from "./elf.ts";
import { fileEntry, textEntry } from "./entry.ts";

test("a package contains compiled files of its architecture only", (t) => {
  const arm = aFile(t, Buffer.from("7f454c46020101000000000000000000" + "0200b700", "hex"));
  const text = aFile(t, Buffer.from("#!/bin/sh\n"));
  const entries = [fileEntry("usr/bin/a", arm), fileEntry("usr/bin/b", text), textEntry("etc/c", "c")];
  assertArchitecture(entries, "arm64");
  assert.throws(() => assertArchitecture(entries, "amd64"), {
    message:
      /is compiled for another machine \(ELF number 183\), .* for amd64 can't contain it as \/usr\/bin\/a$/,
  });
});

test("this machine's node is accepted in a package for this machine only", () => {
  const own = goArchitecture();
  const entries = [fileEntry("usr/lib/forage/node", process.execPath)];
  assertArchitecture(entries, own);
  assert.throws(() => assertArchitecture(entries, own === "amd64" ? "arm64" : "amd64"));
});

function aFile(t: TestContext, content: Buffer): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-elf-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "file");
  writeFileSync(path, content);
  return path;
}
