import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "../clock.ts";
import type { RunningAgent } from "./conflict.ts";
import { HostClaim, type HostClaimOptions, HostConflict, networkNamespace } from "./host-claim.ts";

function scene(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "forage-agents-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return (agent: Partial<RunningAgent>, namespace = "net:[1]"): HostClaimOptions => ({
    directory,
    namespace,
    agent: { instance: "main", nodeName: "a", dataDir: "/d/a", pid: 1, authorities: [], ...agent },
    clock: systemClock,
  });
}

test("an instance can be used once in a network namespace, and again after its agent has ended", async (t) => {
  const options = scene(t);
  const first = await HostClaim.acquire(options({}));
  await assert.rejects(HostClaim.acquire(options({ nodeName: "b", dataDir: "/d/b", pid: 2 })), {
    name: "HostConflict",
    message:
      /the agent of node a \(instance main, process 1, data directory \/d\/a\) uses the instance "main"/,
  });
  const elsewhere = await HostClaim.acquire(options({ nodeName: "b" }, "net:[2]"));
  await first.close();
  const second = await HostClaim.acquire(options({ nodeName: "b" }));
  await second.close();
  await elsewhere.close();
});

test("an agent that removes its directory during another one's start does not cause a failure", async (t) => {
  const options = scene(t)({});
  const namespace = join(options.directory, "net2");
  mkdirSync(namespace);
  // Appears in a listing but can't be opened.
  symlinkSync(join(options.directory, "ended"), join(namespace, "main"));
  const claim = await HostClaim.acquire(options);
  await claim.close();
});

test("two agents of one cluster can't start in one network namespace", async (t) => {
  const options = scene(t);
  const first = await HostClaim.acquire(options({ authorities: ["old", "pin"] }));
  await assert.rejects(
    HostClaim.acquire(options({ instance: "two", authorities: ["pin"] })),
    /node a \(instance main, process 1, data directory \/d\/a\) belongs to the same cluster/,
  );
  const other = await HostClaim.acquire(options({ instance: "two", authorities: ["another"] }));
  const apart = await HostClaim.acquire(options({ instance: "two", authorities: ["pin"] }, "net:[2]"));
  for (const claim of [first, other, apart]) await claim.close();
});

test("an agent can't join the cluster of another in its network namespace", async (t) => {
  const options = scene(t);
  const first = await HostClaim.acquire(options({}));
  const second = await HostClaim.acquire(options({ instance: "two" }));
  await first.joins("pin");
  await first.joins("pin");
  await assert.rejects(second.joins("pin"), HostConflict);
  await second.joins("another");
  await first.close();
  await second.joins("pin");
  await second.close();
});

test("a killed agent occupies nothing, and its record is removed", async (t) => {
  const options = scene(t);
  const program = `
    import { HostClaim } from ${JSON.stringify(join(import.meta.dirname, "host-claim.ts"))};
    import { systemClock } from ${JSON.stringify(join(import.meta.dirname, "../clock.ts"))};
    await HostClaim.acquire({ ...JSON.parse(process.argv[1]), clock: systemClock });
    console.log("taken");
    setInterval(() => {}, 1000);`;
  const first = options({ authorities: ["pin"] });
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, JSON.stringify(first)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  await assert.rejects(HostClaim.acquire(options({ instance: "two", authorities: ["pin"] })), HostConflict);
  child.kill("SIGKILL");
  await once(child, "exit");
  const second = await HostClaim.acquire(options({ instance: "two", authorities: ["pin"] }));
  assert.deepEqual(readdirSync(join(first.directory, "net1")), ["two"]);
  await second.close();
});

test("the kernel provides the name of the network namespace", async () => {
  assert.match(await networkNamespace(), /^net:\[\d+\]$/);
});
