import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findStaticBusybox } from "../lib/busybox-image.ts";
import { loadImage } from "../lib/load-image.ts";
import { packOciArchive } from "../lib/oci-archive.ts";
import { packTar } from "../lib/tar.ts";
import type { TestHost } from "../lib/test-host.ts";

/** Loads an image with one static program that sleeps and an empty directory, and returns its reference. */
export async function bareImage(host: TestHost): Promise<string> {
  const busybox = findStaticBusybox();
  assert.ok(busybox);
  const reference = "localhost/forage/bare:1";
  const layer = packTar([
    { type: "file", path: "sleep", content: readFileSync(busybox), mode: 0o755 },
    { type: "directory", path: "tmp/", mode: 0o1777 },
  ]);
  const archivePath = join(host.dir, "bare.tar");
  writeFileSync(
    archivePath,
    packOciArchive({ reference, layer, entrypoint: [], cmd: ["/sleep", "1"], env: [] }),
  );
  await loadImage({ address: host.containerd.address, namespace: host.namespace, archivePath });
  return reference;
}
