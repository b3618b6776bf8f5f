import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { listMounts } from "../lib/mounts.ts";
import { findProcesses, isAlive } from "../lib/process-identity.ts";
import { run } from "../lib/run.ts";
import { withHost } from "../lib/test-host.ts";

test("a test host runs containers and leaves nothing behind", async (t) => {
  const host = await withHost(t);
  const { stdout } = await host.nerdctl(["run", "--rm", "--network", "none", host.image, "echo", "hello"]);
  assert.equal(stdout, "hello\n");

  await run("ip", ["netns", "add", `forage-${host.name}-a`]);
  await run("nft", ["add", "table", "ip", `forage_${host.name}`]);
  await host.nerdctl([
    "run",
    "--detach",
    "--network",
    `ns:/run/netns/forage-${host.name}-a`,
    host.image,
    "sleep",
    "1000",
  ]);
  const program = host.spawn("sleeper", "sleep", ["1000"]);
  const registry = await host.startRegistry();
  const remains = await host.networkRemains();
  assert.deepEqual([remains.namespaces.length, remains.tables.length], [1, 1]);

  await host.close();

  const after = await host.networkRemains();
  assert.deepEqual(after, { namespaces: [], links: [], tables: [], leases: [] });
  assert.equal(isAlive(program.identity), false);
  assert.equal(isAlive(host.containerd.identity), false);
  await assert.rejects(fetch(`http://${registry.address}/v2/`));
  assert.deepEqual(
    findProcesses((argv) => argv.includes(host.containerd.address)),
    [],
  );
  assert.deepEqual(
    listMounts().filter((path) => path.startsWith(host.dir)),
    [],
  );
  assert.equal(existsSync(host.dir), false);
  assert.equal(existsSync(`/run/containerd/runc/${host.namespace}`), false);
  assert.deepEqual(cgroupsNamed(host.namespace), []);
});

test("containers outlive their containerd", async (t) => {
  const host = await withHost(t);
  const { stdout: id } = await host.nerdctl([
    ...["run", "--detach", "--network", "none", host.image],
    ...["sleep", "1000"],
  ]);
  const { stdout: pid } = await host.nerdctl(["inspect", "--format", "{{.State.Pid}}", id.trim()]);
  const isRunning = () => readFileSync(`/proc/${pid.trim()}/cmdline`, "utf8").startsWith("sleep\0");
  assert.equal(isRunning(), true);

  await host.containerd.stopDaemon();

  assert.equal(isAlive(host.containerd.identity), false);
  assert.equal(isRunning(), true);
});

test("a registry serves pushed images", async (t) => {
  const host = await withHost(t);
  const registry = await host.startRegistry();
  const path = await buildBusyboxImage({
    name: "localhost/forage/pull:1",
    files: { "/www/index.html": "pulled" },
  });
  const { reference, digest } = await registry.pushImage(path, "forage/pull:1");
  assert.match(digest, /^sha256:[0-9a-f]{64}$/);

  await host.nerdctl(["pull", "--quiet", reference]);
  const { stdout } = await host.nerdctl([
    "run",
    "--rm",
    "--network",
    "none",
    reference,
    "cat",
    "/www/index.html",
  ]);

  assert.equal(stdout, "pulled");
});

function cgroupsNamed(namespace: string): string[] {
  return readdirSync("/sys/fs/cgroup").filter((name) => existsSync(`/sys/fs/cgroup/${name}/${namespace}`));
}
