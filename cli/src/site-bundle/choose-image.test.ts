import assert from "node:assert/strict";
import { test } from "node:test";
import type { ArchiveFile } from "../images/archive-file.ts";
import { type ArchiveEntry, type ArchiveImage, digestOf } from "../images/archive-images.ts";
import { type Candidate, chooseImage } from "./choose-image.ts";

const INNER = Buffer.from(JSON.stringify({ mediaType: "inner" }));
const OUTER = Buffer.from(JSON.stringify({ mediaType: "outer" }));

function manifestOf(architecture: string): Buffer {
  return Buffer.from(JSON.stringify({ mediaType: "manifest", architecture }));
}

function candidate(architectures: readonly string[], indexes: readonly Buffer[] = []): Candidate {
  const entry: ArchiveEntry = {
    ...{ names: ["web:v1"], digest: undefined, severalPlatforms: architectures.length > 1 },
    architectures: async () => architectures,
    read: async (architecture): Promise<ArchiveImage> => {
      const manifest = manifestOf(architecture);
      return { indexes, manifest, config: Buffer.from("{}"), layers: new Map() };
    },
  };
  return { archive: {} as ArchiveFile, entry };
}

test("keeps an archive's outermost index, to which names with a digest refer", async () => {
  const both = candidate(["amd64", "arm64"], [OUTER, INNER]);
  const name = `web@${digestOf(OUTER)}`;
  const { top, topType, platforms } = await chooseImage(name, [both], ["amd64"]);
  assert.deepEqual([top, topType, [...platforms.keys()]], [OUTER, "outer", ["amd64"]]);
  const flat = await chooseImage("web:v1", [candidate(["amd64"])], []);
  assert.deepEqual([flat.top, flat.topType], [manifestOf("amd64"), "manifest"]);
});

test("joins the platforms of several archives in an index of its own", async () => {
  const { top } = await chooseImage("web:v1", [candidate(["amd64"]), candidate(["arm64"])], []);
  const { manifests } = JSON.parse(top.toString());
  assert.deepEqual(
    manifests.map((it: { digest: string; platform: object }) => [it.digest, it.platform]),
    ["amd64", "arm64"].map((architecture) => [
      digestOf(manifestOf(architecture)),
      { os: "linux", architecture },
    ]),
  );
});

test("refuses an image that lacks a requested platform, and one with another digest", async () => {
  await assert.rejects(chooseImage("web:v1", [candidate(["amd64"])], ["amd64", "arm64"]), {
    message: /^web:v1 is not complete for linux\/arm64: /,
  });
  await assert.rejects(chooseImage("web:v1", [], []), { message: /not complete for any platform/ });
  const name = `web@${digestOf(INNER)}`;
  await assert.rejects(chooseImage(name, [candidate(["amd64"])], []), { message: /has the digest/ });
});
