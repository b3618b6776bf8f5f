import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { forestSchema } from "@forage/proto/forest-schema";
import { loadProgram } from "../src/commands/program.ts";
import { EXIT } from "../src/exit-code.ts";
import { readBundles } from "../src/manifest/bundles.ts";
import { RESOURCE_KINDS } from "../src/view/kinds.ts";
import { renderReference } from "./command-reference.ts";

const program = await loadProgram();
const docs = join(import.meta.dirname, "../../docs/reference");
const cli = readFileSync(join(docs, "cli.md"), "utf8");
const manifest = readFileSync(join(docs, "manifest.md"), "utf8");

describe("docs/reference/cli.md", () => {
  test("matches the definitions, as written by npm run docs -w cli", () => {
    assert.ok(cli.includes(renderReference(program)), "run npm run docs -w cli");
  });

  test("names every exit code", () => {
    for (const [name, code] of Object.entries(EXIT))
      assert.match(cli, new RegExp(`^\\| ${code} \\|`, "m"), name);
  });

  test("names every variable and key that is read, and no others", () => {
    const sources = ["settings.ts", "config-file.ts"]
      .map((file) => readFileSync(join(import.meta.dirname, "../src/config", file), "utf8"))
      .join();
    const read = new Set([...sources.matchAll(/env\.(FORAGE_[A-Z_]+)/g)].map(([, name]) => name));
    const named = new Set([...cli.matchAll(/`(FORAGE_[A-Z_]+)`/g)].map(([, name]) => name));
    named.delete("FORAGE_DEBUG");
    assert.deepEqual([...named].sort(), [...read].sort());
    for (const key of ["server", "caFile", "tokenFile", "namespace"])
      assert.ok(cli.includes(`\`${key}\``), key);
  });
});

describe("docs/reference/manifest.md", () => {
  test("contains valid examples", () => {
    const examples = [...manifest.matchAll(/```(yaml|json)\n(.*?)```/gs)];
    assert.ok(examples.length >= 2);
    for (const [, , text = ""] of examples) {
      const bundles = readBundles([{ name: "example", text }], {
        namespace: "default",
        flagNamespace: undefined,
      });
      assert.ok(bundles.length > 0);
    }
  });

  test("names every kind of the contract", () => {
    const kinds = forestSchema["forest.v1.ForageResource"]?.fields
      .filter(({ oneof }) => oneof === "spec")
      .map(({ name }) => name);
    assert.deepEqual([...RESOURCE_KINDS].sort(), [...(kinds ?? [])].sort());
    for (const kind of RESOURCE_KINDS) assert.ok(manifest.includes(`\`${kind}\``), kind);
  });
});
