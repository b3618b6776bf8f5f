import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { NerdctlRuntime } from "./nerdctl-runtime.ts";

const NOW_MS = Date.UTC(2030, 0, 1);
const CALL_TIMEOUT_MS = 60_000;

test("removes what interrupted calls have left only after twice a call's limit", async (t) => {
  const { runtime, leave, left } = given(t);
  leave("ancient", 2 * CALL_TIMEOUT_MS + 1_000);
  leave("recent", 2 * CALL_TIMEOUT_MS - 1_000);
  leave("new", -CALL_TIMEOUT_MS);
  assert.deepEqual(await runtime.list(new AbortController().signal), []);
  assert.deepEqual(left(), ["new", "recent"]);
});

/** Returns a runtime whose nerdctl lists no containers, and functions that create and list data roots. */
function given(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-runtime-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const nerdctlPath = join(dir, "nerdctl");
  writeFileSync(nerdctlPath, "#!/bin/sh\n", { mode: 0o700 });
  const stateDir = join(dir, "runtime");
  const dataRoots = join(stateDir, "containers");
  const runtime = new NerdctlRuntime({
    ...{ nerdctlPath, stateDir, callTimeoutMs: CALL_TIMEOUT_MS },
    ...{ address: join(dir, "containerd.sock"), namespace: "forage-runtime-test", instance: "test" },
    ...{ programDir: join(dir, "programs"), volumeDir: join(dir, "volumes") },
    ...{ cniBinDir: join(dir, "cni-bin"), cniConfigDir: join(dir, "cni") },
    clock: new VirtualClock({ wallMs: NOW_MS }),
  });
  t.after(() => runtime.close());
  const leave = (name: string, ageMs: number): void => {
    mkdirSync(join(dataRoots, name), { recursive: true });
    const madeS = (NOW_MS - ageMs) / 1000;
    utimesSync(join(dataRoots, name), madeS, madeS);
  };
  return { runtime, leave, left: () => readdirSync(dataRoots).sort() };
}
