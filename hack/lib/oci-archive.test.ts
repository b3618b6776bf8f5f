import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { packOciArchive, sha256 } from "./oci-archive.ts";
import { packTar } from "./tar.ts";

test("tar can read the packed files, links and directories with their modes", () => {
  const archive = packTar([
    { type: "directory", path: "bin/", mode: 0o1777 },
    { type: "file", path: "bin/a", content: Buffer.from("x".repeat(513)), mode: 0o755 },
    { type: "link", path: "bin/b", target: "a" },
  ]);

  const listing = execFileSync("tar", ["--list", "--verbose", "--numeric-owner", "--utc"], {
    input: archive,
    encoding: "utf8",
  });

  assert.deepEqual(listing.replace(/ +/g, " ").trim().split("\n"), [
    "drwxrwxrwt 0/0 0 1970-01-01 00:00 bin/",
    "-rwxr-xr-x 0/0 513 1970-01-01 00:00 bin/a",
    "lrwxrwxrwx 0/0 0 1970-01-01 00:00 bin/b -> a",
  ]);
});

test("equal images are identical in every byte, and every blob is found by its digest", () => {
  const image = {
    reference: "localhost/a:1",
    layer: Buffer.from("layer"),
    entrypoint: [],
    cmd: ["/a"],
    env: [],
  };
  const archive = packOciArchive(image);
  assert.ok(archive.equals(packOciArchive(image)));

  const entry = (path: string): Buffer =>
    execFileSync("tar", ["--extract", "--to-stdout", path], { input: archive });
  const blob = (digest: string): Buffer => {
    const content = entry(`blobs/sha256/${digest.replace("sha256:", "")}`);
    assert.equal(sha256(content), digest);
    return content;
  };
  const index = JSON.parse(entry("index.json").toString());
  const manifest = JSON.parse(blob(index.manifests[0].digest).toString());
  assert.equal(blob(manifest.layers[0].digest).toString(), "layer");
  assert.deepEqual(JSON.parse(blob(manifest.config.digest).toString()).rootfs.diff_ids, [
    sha256(image.layer),
  ]);
});
