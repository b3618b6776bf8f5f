import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { listMounts } from "../lib/mounts.ts";
import { findNetworkRemains } from "../lib/network-remains.ts";
import { findProcesses } from "../lib/process-identity.ts";
import { withHost } from "../lib/test-host.ts";
import { TEST_HOSTS } from "../lib/test-host-remains.ts";

const LEAVES_A_MESS = `
import { run } from ${JSON.stringify(join(import.meta.dirname, "../lib/run.ts"))};
import { startTestHost } from ${JSON.stringify(join(import.meta.dirname, "../lib/test-host.ts"))};
const host = await startTestHost();
await run("ip", ["netns", "add", "forage-" + host.name]);
await run("ip", ["link", "add", "fg" + host.name, "type", "bridge"]);
await host.nerdctl(["run", "--detach", "--network", "none", host.image, "sleep", "1000"]);
host.spawn("sleeper", "sleep", ["1000"]);
console.log(host.name);
setInterval(() => {}, 1000);
`;

test("the next test host removes the remains of a killed test process", async (t) => {
  const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", LEAVES_A_MESS], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => void child.kill("SIGKILL"));
  const [name] = (await once(createInterface(child.stdout), "line")) as [string];
  child.kill("SIGKILL");
  await once(child, "exit");
  const dir = join(TEST_HOSTS, name);
  assert.equal((await findNetworkRemains(name)).namespaces.length, 1);
  assert.notDeepEqual(
    listMounts().filter((path) => path.startsWith(dir)),
    [],
  );

  await withHost(t);

  assert.deepEqual(await findNetworkRemains(name), { namespaces: [], links: [], tables: [], leases: [] });
  assert.deepEqual(
    listMounts().filter((path) => path.startsWith(dir)),
    [],
  );
  assert.deepEqual(
    findProcesses((argv) => argv.some((argument) => argument.startsWith(dir))),
    [],
  );
  assert.equal(existsSync(dir) || existsSync(`${dir}.json`), false);
});
