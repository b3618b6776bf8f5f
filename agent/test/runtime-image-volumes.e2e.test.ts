import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { buildBusyboxImage } from "../../hack/lib/busybox-image.ts";
import { loadImage } from "../../hack/lib/load-image.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { runToEnd } from "./runtime-contract.ts";

let it: NerdctlUnderTest;
before(async () => {
  it = await openNerdctl();
});
after(() => it?.close());

test("the data of an image's volume is on disk, and is removed with the container", async ({ signal }) => {
  const image = "localhost/forage-volume:1";
  const archivePath = await buildBusyboxImage({ name: image, config: { Volumes: { "/data": {} } } });
  const { host } = it;
  await loadImage({ address: host.containerd.address, namespace: host.namespace, archivePath });
  const spec = it.spec(["sh", "-c", "echo kept > /data/file && grep ' /data ' /proc/self/mountinfo"], {
    image,
  });
  const { id } = await runToEnd(it, spec, signal);
  const held = join(it.options.volumeDir, spec.name, host.namespace);
  assert.ok(existsSync(held), "nerdctl made the volume where it was led to");

  await it.runtime.remove([id], signal);
  assert.equal(existsSync(join(it.options.volumeDir, spec.name)), false);
});
