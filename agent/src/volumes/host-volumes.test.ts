import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { HostVolumes } from "./host-volumes.ts";

test("creates its directories for its owner only, and accepts them at the next start", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "forage-volumes-"));
  t.after(() => rmSync(root, { recursive: true }));
  const directory = join(root, "deep", "volumes");
  for (let start = 0; start < 2; start++) {
    const volumes = new HostVolumes({
      ...{ directory, clock: new VirtualClock(), useImages: false },
      events: {
        exceeded: () => {},
        warn: (event, fields) => assert.fail(`${event} ${JSON.stringify(fields)}`),
      },
    });
    await volumes.recover({ knownUids: new Set(), inUse: [] }, AbortSignal.timeout(60_000));
    await volumes.close();
  }
  assert.equal(statSync(directory).mode & 0o777, 0o700);
});
