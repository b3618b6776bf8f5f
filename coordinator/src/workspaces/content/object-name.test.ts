import assert from "node:assert/strict";
import { test } from "node:test";
import {
  archiveName,
  archivePrefix,
  objectNameProblem,
  parseSnapshotUrl,
  snapshotUrl,
} from "./object-name.ts";

const texts = [
  "a",
  "a-b",
  "b",
  ".",
  "..",
  "a/b",
  "a%2Fb",
  "",
  "%",
  "Ä ö",
  "x".repeat(500),
  `${"x".repeat(500)}y`,
];

test("returns valid names that differ whenever owner, meta id, instance or transfer differ", () => {
  const names = new Map<string, string>();
  for (const owner of texts)
    for (const metaId of texts)
      for (const [instanceId, transfer] of [
        ["a", "b"],
        ["a_b", "c"],
        ["a", "b_c"],
        ["..", "x".repeat(500)],
      ] as const) {
        const name = archiveName({ owner, metaId, instanceId, transfer });
        assert.equal(objectNameProblem(name), undefined, name);
        assert.ok(name.startsWith(archivePrefix({ owner, metaId })));
        assert.equal(names.get(name), undefined, name);
        names.set(name, name);
      }
});

test("keeps names of ordinary ids readable", () => {
  const archive = { owner: "u-1", metaId: "gray-wolf", instanceId: "6f1e", transfer: "final" };
  assert.equal(archiveName(archive), "u-1/gray-wolf/6f1e_final.tar.zst");
});

test("parses snapshot URLs that it formatted, and rejects other texts", () => {
  assert.deepEqual(parseSnapshotUrl(snapshotUrl("o/w/a.tar.zst", "main")), {
    object: "o/w/a.tar.zst",
    store: "main",
  });
  for (const url of ["", "a", "@main", "a@", "../a@main", "a/@main"])
    assert.equal(parseSnapshotUrl(url), undefined, url);
});
