import assert from "node:assert/strict";
import { arch } from "node:os";
import { test } from "node:test";
import { checkPlatform, readPlatforms } from "./foreign-image.ts";

const HOST = arch() === "x64" ? "amd64" : arch();

for (const platform of [`linux/${HOST}`, HOST === "amd64" ? "linux/386" : "linux/arm", "", "/", "linux/"]) {
  test(`accepts a platform that runs here or is unknown: ${JSON.stringify(platform)}`, () => {
    assert.doesNotThrow(() => checkPlatform("a:1", platform));
  });
}

for (const platform of ["linux/s390x", `windows/${HOST}`]) {
  test(`rejects platform ${platform}`, () => {
    assert.throws(() => checkPlatform("a:1", platform), {
      message: `image a:1 is for ${platform}; this host is linux/${HOST}`,
    });
  });
}

for (const [what, json, expected] of [
  [
    "one",
    { Descriptor: { platform: { os: "linux", architecture: "arm64", variant: "v8" } } },
    ["linux/arm64/v8"],
  ],
  [
    "several, with an attestation",
    [
      { Descriptor: { platform: { os: "linux", architecture: "s390x" } } },
      { Descriptor: { platform: { os: "linux", architecture: "arm64" } } },
      { Descriptor: { platform: { os: "unknown", architecture: "unknown" } } },
    ],
    ["linux/arm64", "linux/s390x"],
  ],
  ["nothing of the kind", { Descriptor: "x" }, []],
] as const) {
  test(`reads the platforms of ${what}`, () => {
    assert.deepEqual(readPlatforms(JSON.stringify(json)), expected);
  });
}

test("reads no platforms from text that is not JSON", () => assert.deepEqual(readPlatforms("<html>"), []));
