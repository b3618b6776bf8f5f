import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { bundlePrograms } from "./bundle-programs.ts";

const MESSAGE = `export const Leaf = {
  encode(message: { size: number }): string {
    return String(message.size);
  },

  fromJSON(object: any): { size: number } {
    return {
      size: isSet(object.size) ? Number(object.size) : 0,

    };
  },

  toJSON(_: { size: number }): unknown {
    return "as JSON";
  },

  fromPartial(object: { size?: number }): { size: number } {
    return { size: object.size ?? 7 };
  },
};

function isSet(value: any): boolean {
  return value !== undefined;
}
`;

test("a program of the agent has generated messages without their functions for JSON", async (t) => {
  const build = inTree(t, "agent/src/main.ts");
  const bundle = await build("console.log(Leaf.encode(Leaf.fromPartial({})));");
  assert.equal(execFileSync(process.execPath, [bundle], { encoding: "utf8" }), "7\n");
  assert.doesNotMatch(readFileSync(bundle, "utf8"), /JSON|isSet/);
});

test("a program of the agent that calls a function for JSON is refused with the name of its file", async (t) => {
  const build = inTree(t, "agent/src/main.ts");
  await assert.rejects(build("console.log(Leaf.toJSON(Leaf.fromPartial({})));"), /agent\/src\/main\.ts/);
});

test("other programs have the functions for JSON", async (t) => {
  const build = inTree(t, "cli/src/main.ts");
  const bundle = await build("console.log(Leaf.toJSON(Leaf.fromJSON({})));");
  assert.equal(execFileSync(process.execPath, [bundle], { encoding: "utf8" }), "as JSON\n");
});

/** Returns a function that bundles a program with the given statement, and returns the path of the bundle. */
function inTree(t: TestContext, entry: string): (statement: string) => Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  t.after(() => rmSync(root, { recursive: true }));
  for (const folder of ["proto/gen", join(entry, "..")]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, "proto/gen/leaf.ts"), MESSAGE);
  return async (statement) => {
    writeFileSync(join(root, entry), `import { Leaf } from "../../proto/gen/leaf.ts";\n${statement}`);
    const outDir = join(root, "dist");
    await bundlePrograms({ root, outDir, programs: { one: entry }, compile: {} });
    return join(outDir, "one.mjs");
  };
}
