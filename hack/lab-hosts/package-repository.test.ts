import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writePackageIndex } from "./package-repository.ts";

const without = existsSync("/usr/bin/dpkg-deb") ? false : "dpkg-deb is not installed";

test("the index describes each package with its path, size and checksum", { skip: without }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-index-"));
  t.after(() => rmSync(dir, { recursive: true }));
  for (const name of ["one", "two"]) aPackage(dir, name);
  writeFileSync(join(dir, "notes.txt"), "no package");
  await writePackageIndex(dir);
  const stanzas = readFileSync(join(dir, "Packages"), "utf8").trimEnd().split("\n\n").sort();
  assert.equal(stanzas.length, 2);
  const [one = ""] = stanzas;
  assert.match(one, /^Package: one$/m);
  assert.match(one, /^Filename: \.\/one\.deb$/m);
  assert.match(one, new RegExp(`^Size: ${statSync(join(dir, "one.deb")).size}$`, "m"));
  const [sum] = execFileSync("sha256sum", [join(dir, "one.deb")], { encoding: "utf8" }).split(" ");
  assert.match(one, new RegExp(`^SHA256: ${sum}$`, "m"));
});

function aPackage(dir: string, name: string): void {
  const tree = join(dir, `${name}-tree`);
  mkdirSync(join(tree, "DEBIAN"), { recursive: true, mode: 0o755 });
  const control = [
    ...[`Package: ${name}`, "Version: 1", "Architecture: all"],
    ...["Maintainer: test <test@localhost>", "Description: test"],
  ];
  writeFileSync(join(tree, "DEBIAN/control"), `${control.join("\n")}\n`);
  execFileSync("dpkg-deb", ["--root-owner-group", "--build", tree, join(dir, `${name}.deb`)]);
  rmSync(tree, { recursive: true });
}
