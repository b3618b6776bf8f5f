import assert from "node:assert/strict";
import { test } from "node:test";
import { normalizeImage } from "./image-reference.ts";
import { RuntimeError } from "./runtime.ts";

const DIGEST = `sha256:${"a1".repeat(32)}`;

for (const [given, full] of [
  ["busybox", "docker.io/library/busybox:latest"],
  ["busybox:1.36", "docker.io/library/busybox:1.36"],
  ["user/app", "docker.io/user/app:latest"],
  ["cafe", "docker.io/library/cafe:latest"],
  ["docker.io/library/busybox:1", "docker.io/library/busybox:1"],
  ["index.docker.io/busybox", "docker.io/library/busybox:latest"],
  ["localhost/app:1", "localhost/app:1"],
  ["localhost:5000/a/b", "localhost:5000/a/b:latest"],
  ["127.0.0.1:5000/a/b:2", "127.0.0.1:5000/a/b:2"],
  ["[::1]:5000/a:1", "[::1]:5000/a:1"],
  ["ghcr.io/a/b/c_d:V1.0-x", "ghcr.io/a/b/c_d:V1.0-x"],
  ["UPPER/app", "UPPER/app:latest"],
  [`app@${DIGEST}`, `docker.io/library/app@${DIGEST}`],
  [`r.example/app:1@${DIGEST}`, `r.example/app:1@${DIGEST}`],
] as const) {
  test(`expands ${given} to ${full}`, () => assert.equal(normalizeImage(given), full));
}

for (const bad of [
  "",
  "-x",
  "--privileged",
  "--privileged=true",
  "Foo BAR",
  "App",
  "a//b",
  "/a",
  "a/",
  "a:",
  "a:b:c",
  "a@sha256:12",
  "oci-archive:///etc/passwd",
  "ipfs://bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
  "a b",
  "a\nb",
  "a".repeat(300),
  "ab".repeat(32),
]) {
  test(`rejects ${JSON.stringify(bad.slice(0, 40))} as an image name`, () => {
    assert.throws(
      () => normalizeImage(bad),
      (error) => error instanceof RuntimeError && error.code === "IMAGE_INVALID" && !error.retryable,
    );
  });
}
