import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { loadKeys, parseKeys } from "./key-file.ts";

const a = Buffer.alloc(32, 1).toString("base64");
const b = Buffer.alloc(32, 2).toString("base64");

test("creates a file that only its owner can read at the first start, and reads it at the next", async (t) => {
  const directory = await aDirectory(t);
  const defaultPath = join(directory, "keys", "secrets.keys");
  const made = await loadKeys({ defaultPath, mayMake: true });
  assert.equal(made.length, 1);
  assert.equal((await stat(defaultPath)).mode & 0o777, 0o600);
  assert.deepEqual(await loadKeys({ defaultPath, mayMake: true }), made);
});

test("never creates a configured file, and rejects a file that others can read", async (t) => {
  const directory = await aDirectory(t);
  const path = join(directory, "mine");
  const defaultPath = join(directory, "default");
  await assert.rejects(loadKeys({ path, defaultPath, mayMake: true }), { code: "FILE_MISSING" });
  await writeFile(path, a, { mode: 0o644 });
  await assert.rejects(loadKeys({ path, defaultPath, mayMake: true }), { code: "FILE_UNSAFE" });
  await chmod(path, 0o600);
  assert.equal((await loadKeys({ path, defaultPath, mayMake: true })).length, 1);
});

test("prefers systemd's credential to the default file", async (t) => {
  const credentialsDirectory = await aDirectory(t);
  const defaultPath = join(credentialsDirectory, "default");
  await writeFile(join(credentialsDirectory, "forage-secret-keys"), `${b}\n`, { mode: 0o440 });
  assert.deepEqual(await loadKeys({ credentialsDirectory, defaultPath, mayMake: true }), parseKeys(b, "x"));
  await assert.rejects(readFile(defaultPath), { code: "ENOENT" });
});

test("returns the keys in the order of the file", () => {
  const keys = parseKeys(`# new\n${b}\n\n# old\n  ${a}  \n`, "f");
  assert.deepEqual(
    keys.map(({ bytes }) => bytes[0]),
    [2, 1],
  );
  assert.notEqual(keys[0]?.id, keys[1]?.id);
});

test("names the number of an invalid line and never quotes the line", () => {
  const short = Buffer.alloc(31, 3).toString("base64");
  for (const [text, problem] of [
    ["", /contains no key/],
    ["# nothing\n", /contains no key/],
    [`${a}\n${short}`, /f, line 2: must be 32 bytes/],
    [`${a}!`, /f, line 1/],
    [`${a}\n${a}`, /a key twice/],
    [
      Array.from({ length: 17 }, (_, i) => Buffer.alloc(32, i + 1).toString("base64")).join("\n"),
      /the limit is 16/,
    ],
  ] as const) {
    assert.throws(
      () => parseKeys(text, "f"),
      (error: Error) => {
        assert.match(error.message, problem);
        assert.equal(error.message.includes(short) || error.message.includes(a), false);
        return true;
      },
    );
  }
});

async function aDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "forage-keys-"));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}
