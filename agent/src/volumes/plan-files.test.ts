import assert from "node:assert/strict";
import { test } from "node:test";
import { type PlannedFile, planFiles } from "./plan-files.ts";
import { type FilesSource, VolumeError, type VolumeErrorCode } from "./volumes.ts";

const CONTENTS = new Map([
  ["user", Buffer.from("anna")],
  ["password", Buffer.from("s3cret")],
]);

function aSource(changes: Partial<FilesSource> = {}): FilesSource {
  return {
    type: "files",
    secret: true,
    title: "secret db",
    contents: CONTENTS,
    items: [],
    defaultMode: 0,
    optional: false,
    ...changes,
  };
}

function shape(files: readonly PlannedFile[] | undefined) {
  return files?.map(({ path, content, mode }) => `${path} ${mode.toString(8)} ${Buffer.from(content)}`);
}

test("all keys become files, with mode 0644 by default", () => {
  assert.deepEqual(shape(planFiles(aSource())), ["user 644 anna", "password 644 s3cret"]);
  assert.deepEqual(shape(planFiles(aSource({ defaultMode: 0o400 }))), [
    "user 400 anna",
    "password 400 s3cret",
  ]);
});

test("items select keys, paths and modes", () => {
  const items = [
    { key: "user", path: "who/./is//it", mode: 0 },
    { key: "password", path: "pass", mode: 0o600 },
    { key: "password", path: "again", mode: 0 },
  ];
  assert.deepEqual(shape(planFiles(aSource({ items, defaultMode: 0o440 }))), [
    "who/is/it 440 anna",
    "pass 600 s3cret",
    "again 440 s3cret",
  ]);
});

test("leaves out a missing optional object, and waits for a required one", () => {
  const { contents: _, ...nothing } = aSource();
  const items = [
    { key: "nobody", path: "x", mode: 0 },
    { key: "user", path: "y", mode: 0 },
  ];
  assert.equal(planFiles({ ...nothing, optional: true }), undefined);
  assert.deepEqual(shape(planFiles(aSource({ items, optional: true }))), ["y 644 anna"]);
  assert.throws(() => planFiles(nothing), failsWith("SOURCE_MISSING", "secret db doesn't exist"));
  assert.throws(
    () => planFiles(aSource({ items })),
    failsWith("SOURCE_MISSING", 'secret db has no key "nobody"'),
  );
});

test("rejects items whose paths conflict", () => {
  for (const paths of [
    ["a", "a"],
    ["a", "./a"],
    ["a/b", "a"],
    ["a", "a/b/c"],
    [".", "b"],
  ]) {
    const items = paths.map((path) => ({ key: "user", path, mode: 0 }));
    assert.throws(() => planFiles(aSource({ items })), failsWith("INVALID"), paths.join(" "));
  }
});

function failsWith(code: VolumeErrorCode, message?: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof VolumeError &&
    error.code === code &&
    (message === undefined || error.message === message);
}
