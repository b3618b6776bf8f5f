import { createHash } from "node:crypto";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../lib/run.ts";

/** Writes the index by which apt installs the packages in the directory. */
export async function writePackageIndex(dir: string): Promise<void> {
  const files = readdirSync(dir).filter((file) => file.endsWith(".deb"));
  const stanzas = await Promise.all(files.map((file) => describePackage(dir, file)));
  const index = join(dir, "Packages");
  // A host may be reading the index, so it is replaced by a rename.
  writeFileSync(`${index}.partial`, stanzas.join("\n"));
  renameSync(`${index}.partial`, index);
}

async function describePackage(dir: string, file: string): Promise<string> {
  const path = join(dir, file);
  const { stdout } = await run("dpkg-deb", ["--field", path]);
  const content = readFileSync(path);
  const sum = createHash("sha256").update(content).digest("hex");
  return `${stdout.trimEnd()}\nFilename: ./${file}\nSize: ${content.length}\nSHA256: ${sum}\n`;
}
