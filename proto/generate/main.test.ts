import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

const here = dirname(import.meta.dirname);
let proto = "";

before(async () => {
  const dir = await mkdtemp(join(tmpdir(), "forage-generate-test-"));
  proto = join(dir, "proto");
  await mkdir(join(proto, "forest/forest/v1"), { recursive: true });
  await symlink(join(dirname(here), "node_modules"), join(dir, "node_modules"));
  for (const path of ["generate", "src", "buf.gen.yaml", "package.json"]) {
    await cp(join(here, path), join(proto, path), { recursive: true });
  }
  await writeFile(join(proto, "buf.yaml"), "version: v2\nmodules:\n  - path: forest\n");
  await writeSource("a.proto", "google.protobuf.Duration a = 1;");
});

after(() => rm(dirname(proto), { recursive: true, force: true }));

test("generates code from the sources, and only after a change", async (t) => {
  await t.test("the first time everything is made", async () => {
    await generate();
    assert.match(await readFile(join(proto, "gen/forest/v1/a.ts"), "utf8"), /a: Duration \| undefined/);
    assert.match(
      await readFile(join(proto, "gen/forest-schema.ts"), "utf8"),
      /name: "a", .*kind: "duration"/,
    );
    assert.match(
      await readFile(join(proto, "gen/google/protobuf/duration.ts"), "utf8"),
      /durationFromJson\(object\)/,
    );
  });

  await t.test("nothing is touched while the sources stay the same", async () => {
    const made = await stamps();
    await generate();
    assert.deepEqual(await stamps(), made);
  });

  await t.test("a missing output is generated again, and no other file changes", async () => {
    const { [join("forest", "v1", "a.ts")]: lost, ...others } = await stamps();
    assert.ok(lost);
    await rm(join(proto, "gen/forest/v1/a.ts"));
    await generate();
    const { [join("forest", "v1", "a.ts")]: found, ...untouched } = await stamps();
    assert.ok(found);
    assert.deepEqual(untouched, others);
  });

  await t.test("a changed source is generated again, and output without a source is removed", async () => {
    await rm(join(proto, "forest/forest/v1/a.proto"));
    await writeSource("b.proto", "google.protobuf.Duration b = 1;");
    await generate();
    const outputs = Object.keys(await stamps());
    assert.ok(outputs.includes(join("forest", "v1", "b.ts")));
    assert.ok(!outputs.includes(join("forest", "v1", "a.ts")));
  });

  await t.test("a source that doesn't compile causes an error and keeps the last output", async () => {
    const made = await stamps();
    await writeSource("b.proto", "Missing b = 1;");
    await assert.rejects(generate(), /Missing/);
    assert.deepEqual(await stamps(), made);
  });
});

async function generate(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(proto, "generate/main.mjs")]);
}

function writeSource(name: string, field: string): Promise<void> {
  const head = 'syntax = "proto3";\npackage forest.v1;\nimport "google/protobuf/duration.proto";\n';
  return writeFile(join(proto, "forest/forest/v1", name), `${head}message Only {\n  ${field}\n}\n`);
}

/** Returns the modification times of the outputs. */
async function stamps(): Promise<Record<string, number>> {
  const gen = join(proto, "gen");
  const entries = await readdir(gen, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const times = files.map(async (file) => [file.slice(gen.length + 1), (await stat(file)).mtimeMs] as const);
  return Object.fromEntries(await Promise.all(times));
}
