import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { systemClock } from "../src/clock.ts";
import { execInRuntime } from "../src/probes/exec-in-runtime.ts";
import { probeOver } from "../src/probes/run-probe.ts";
import type { HostVolumes } from "../src/volumes/host-volumes.ts";
import type { VolumeMount } from "../src/volumes/volumes.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { until } from "./until.ts";
import { aMount, aPod, files, MIB, VolumeHost } from "./volume-host.ts";

// Tests volumes inside containers, on a real containerd.

let opened: NerdctlUnderTest;
let host: VolumeHost;
let volumes: HostVolumes;
const signal = new AbortController().signal;

before(async () => {
  opened = await openNerdctl();
  host = new VolumeHost(join(opened.host.dir, "v"));
  volumes = await host.start();
});
after(async () => {
  // Also after a failure: everything of pods is removed, then the claims.
  const last = await host?.start();
  for (const { namespace, name } of (await last?.claims()) ?? [])
    await last.removeClaim(namespace, name, signal);
  await last?.close();
  await volumes?.close();
  await host?.reboot();
  await opened?.close();
});

async function start(uid: string, container: string, mounts: readonly VolumeMount[]) {
  const binds = await volumes.binds(uid, container, mounts, signal);
  const { id } = await opened.runtime.run(opened.spec(["sleep", "1000"], { binds }), signal);
  const exec = execInRuntime(opened.runtime, id);
  const sh = async (command: string) => {
    const { exitCode, output } = await exec(["sh", "-c", command], signal);
    return `${exitCode} ${output.trim()}`;
  };
  return { id, sh, exec };
}

test("a pod's containers share its volumes, within their limits and permissions", {
  timeout: 120_000,
}, async () => {
  const secret = files({ password: "s3cret" }, { secret: true, defaultMode: 0o400 });
  const pod = (password: string) =>
    aPod("a", {
      scratch: { type: "emptyDir", medium: "disk", sizeLimitBytes: 4 * MIB },
      memory: { type: "emptyDir", medium: "memory", sizeLimitBytes: MIB },
      secret: { ...secret, contents: new Map([["password", Buffer.from(password)]]) },
      claim: { type: "claim", namespace: "shop", claim: "db", capacityBytes: 4 * MIB, readOnly: false },
      host: { type: "hostPath", path: "/sys/kernel", pathType: "Directory" },
    });
  await volumes.prepare(pod("s3cret"), signal);
  const mounts = ["scratch", "memory", "secret", "claim", "host"].map((name) => aMount(name));
  const web = await start("a", "web", mounts);
  const sidecar = await start("a", "sidecar", [
    aMount("scratch", { readOnly: true, mountPath: "/ro" }),
    aMount("secret", { subPath: "password", mountPath: "/etc/password" }),
  ]);

  assert.equal(await web.sh("echo hello > /mnt/scratch/x && cat /mnt/secret/password"), "0 s3cret");
  assert.equal(await sidecar.sh("cat /ro/x"), "0 hello");
  assert.match(await sidecar.sh("echo > /ro/y"), /^1 .*Read-only/);
  assert.equal(await sidecar.sh("cat /etc/password"), "0 s3cret");
  assert.match(await web.sh("echo > /mnt/secret/new"), /^1 .*Read-only/);
  for (const name of ["scratch", "memory", "claim"]) {
    assert.match(
      await web.sh(`dd if=/dev/zero of=/mnt/${name}/big bs=1M count=8`),
      /^1 .*No space left/s,
      name,
    );
  }
  assert.match(await web.sh("ls /mnt/host"), /^0 .*mm/s);

  await volumes.update(pod("changed"), signal);
  assert.equal(await web.sh("cat /mnt/secret/password"), "0 changed", "running containers see the change");
  assert.equal(await sidecar.sh("cat /etc/password"), "0 s3cret", "as in Kubernetes, not through a sub-path");

  await opened.runtime.remove([web.id], signal);
  const next = await start("a", "web", mounts);
  assert.equal(await next.sh("cat /mnt/scratch/x"), "0 hello", "volumes outlive containers");
  await opened.runtime.remove([next.id, sidecar.id], signal);
  await volumes.release("a", signal);
  assert.deepEqual(await host.settled(), []);
});

test("a container sees only the sub-path of a volume", { timeout: 120_000 }, async () => {
  await volumes.prepare(aPod("b", { data: { type: "emptyDir", medium: "disk" } }), signal);
  const all = await start("b", "all", [aMount("data")]);
  assert.match(
    await all.sh("mkdir -p /mnt/data/one && echo 1 > /mnt/data/one/x && ln -s /etc /mnt/data/out"),
    /^0/,
  );
  const part = await start("b", "part", [
    aMount("data", { subPath: "one", mountPath: "/one" }),
    aMount("data", { subPath: "two/three", mountPath: "/three" }),
    aMount("data", { subPath: "one/x", mountPath: "/etc/x" }),
  ]);
  assert.equal(await part.sh("cat /one/x /etc/x; ls /one; echo 3 > /three/y"), "0 1\n1\nx");
  assert.equal(await all.sh("cat /mnt/data/two/three/y"), "0 3");
  await assert.rejects(volumes.binds("b", "bad", [aMount("data", { subPath: "out" })], signal), /leads out/);
  await opened.runtime.remove([all.id, part.id], signal);
  await volumes.release("b", signal);
  assert.deepEqual(await host.settled(), []);
});

test("volumes that are released under a running container are removed from the host at once", {
  timeout: 120_000,
}, async () => {
  await volumes.prepare(
    aPod("c", { data: { type: "emptyDir", medium: "disk", sizeLimitBytes: 4 * MIB } }),
    signal,
  );
  const { id, sh } = await start("c", "web", [aMount("data")]);
  await volumes.release("c", signal);
  assert.deepEqual(
    host.mounts().filter((path) => path.includes("/mounts/c")),
    [],
  );
  assert.match(
    await sh("echo 1 > /mnt/data/x && cat /mnt/data/x"),
    /^0 1/,
    "the container keeps what it has",
  );
  await opened.runtime.remove([id], signal);
  await until("its device goes with it", () => host.remains().length === 0);
});

test("command probes give exit code and output, and are ended if they take too long", {
  timeout: 120_000,
}, async () => {
  await volumes.prepare(aPod("d", {}), signal);
  const { id, exec } = await start("d", "web", []);
  const run = probeOver(systemClock);
  const ask = (command: readonly string[], timeoutMs = 30_000) =>
    run({ type: "exec", command }, { address: "", exec }, timeoutMs, signal);
  assert.deepEqual(await ask(["true"]), { outcome: "success", message: "exit code 0" });
  assert.deepEqual(await ask(["sh", "-c", "echo no queue; exit 7"]), {
    outcome: "failure",
    message: "exit code 7",
    detail: "no queue",
  });
  assert.match((await ask(["no-such-program"])).message, /exit code 12[67]/);
  assert.deepEqual(await ask(["sleep", "999"], 2_000), {
    outcome: "failure",
    message: "did not end within 2000 ms",
  });
  assert.match((await exec(["ps"], signal)).output, /sleep 1000/);
  assert.doesNotMatch((await exec(["ps"], signal)).output, /sleep 999/, "it was ended");
  await opened.runtime.remove([id], signal);
  const gone = await ask(["true"]);
  assert.notEqual(gone.outcome, "success", gone.message);
  await volumes.release("d", signal);
});
