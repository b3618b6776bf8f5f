import assert from "node:assert/strict";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { startContainerd } from "../../hack/lib/containerd.ts";
import { findProcesses } from "../../hack/lib/process-identity.ts";
import { run } from "../../hack/lib/run.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { systemClock } from "../src/clock.ts";
import { NerdctlRuntime } from "../src/runtime/nerdctl/nerdctl-runtime.ts";
import type { RuntimeEvent } from "../src/runtime/runtime.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { rejectsWith } from "./runtime-contract.ts";

/** Returns a nerdctl that hangs in calls of `verb` while the file `<dir>/hang` exists, before or after its work. */
function hangingNerdctl(
  it: NerdctlUnderTest,
  verb: string,
  when: "before" | "after",
): { path: string; hang: string } {
  const path = join(it.host.dir, `nerdctl-${verb}-${when}`);
  const hang = join(it.host.dir, `hang-${verb}-${when}`);
  const real = `${it.host.nerdctlPath} "$@"`;
  const script = `#!/bin/sh
case " $* " in *" ${verb} --detach"*) if [ -e ${hang} ]; then ${when === "after" ? `${real} >/dev/null;` : ""} exec sleep 1000; fi;; esac
exec ${real}
`;
  writeFileSync(path, script, { mode: 0o755 });
  writeFileSync(hang, "");
  return { path, hang };
}

test("a run that hangs is interrupted, and its name is free again unless a container was created", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  for (const when of ["before", "after"] as const) {
    const { path, hang } = hangingNerdctl(it, "run", when);
    // A container that is created before the call hangs needs time for it.
    const callTimeoutMs = when === "after" ? 10_000 : 2_000;
    const hanging = new NerdctlRuntime({ ...it.options, nerdctlPath: path, callTimeoutMs });
    const spec = it.spec(["sleep", "1000"]);
    await rejectsWith("TIMEOUT", hanging.run(spec, signal));
    await hanging.close();
    rmSync(hang);
    // The calls that don't hang have the usual time limit.
    const runtime = new NerdctlRuntime({ ...it.options, nerdctlPath: path });
    const found = (await runtime.list(signal)).filter(({ name }) => name === spec.name);
    assert.equal(found.length, when === "after" ? 1 : 0);
    if (when === "after") await rejectsWith("ALREADY_EXISTS", runtime.run(spec, signal));
    else await runtime.run(spec, signal);
    assert.equal((await runtime.list(signal)).filter(({ name }) => name === spec.name).length, 1);
    await runtime.close();
  }
});

test("a run of another agent that is still in progress keeps its name", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  const { path, hang } = hangingNerdctl(it, "run", "before");
  const spec = it.spec(["sleep", "1000"]);
  const giveUp = new AbortController();
  const other = new NerdctlRuntime({ ...it.options, nerdctlPath: path });
  const hanging = other.run(spec, giveUp.signal);
  const failure = rejectsWith("ABORTED", hanging);
  // `sleep` replaces the shell, so the rest of the call doesn't show its arguments: keep a process that does.
  const stand = join(it.options.stateDir, "containers", spec.name);
  await waitFor(() => existsSync(stand), { what: "the other agent has begun", limitMs: 90_000 });
  const { spawn } = await import("node:child_process");
  const orphan = spawn("/bin/sh", ["-c", "read x", `--cidfile=${join(stand, "id")}`], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  t.after(() => orphan.kill("SIGKILL"));
  await rejectsWith("ALREADY_EXISTS", it.runtime.run(spec, signal));
  orphan.kill("SIGKILL");
  await new Promise((resolve) => orphan.once("exit", resolve));
  giveUp.abort();
  await failure;
  rmSync(hang);
  await it.runtime.run(spec, signal);
});

test("a container that starts during the subscription is in the list or among the events", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  // With a slow subscription, a client that relies on it too early misses containers.
  const slow = join(it.host.dir, "nerdctl-slow-events");
  const script = `#!/bin/sh\ncase " $* " in *" events "*) sleep 2;; esac\nexec ${it.host.nerdctlPath} "$@"\n`;
  writeFileSync(slow, script, { mode: 0o755 });
  const runtime = new NerdctlRuntime({ ...it.options, nerdctlPath: slow });
  const stop = new AbortController();
  const seen = new Set<string>();
  let listed: readonly string[] | undefined;
  const listening = (async () => {
    for await (const event of runtime.events(AbortSignal.any([signal, stop.signal]))) {
      if (event.type === "started") seen.add(event.containerId);
      if (event.type === "listening") listed = (await runtime.list(signal)).map(({ id }) => id);
    }
  })();
  const started: string[] = [];
  // Start containers before, during and after.
  while (listed === undefined || started.length < 4) {
    started.push((await runtime.run(it.spec(["sleep", "1000"]), signal)).id);
  }
  const missing = () => started.filter((id) => !seen.has(id) && !listed?.includes(id));
  await waitFor(() => missing().length === 0, {
    what: "all are known",
    limitMs: 90_000,
    explain: () => JSON.stringify(missing()),
  });
  stop.abort();
  await listening;
  await runtime.remove(started, signal);
});

test("after a kill of the event helper, the events end with UNAVAILABLE and can be opened again", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  const helper = () =>
    findProcesses((argv) => argv.includes("events") && argv.includes(`--namespace=${it.host.namespace}`));
  for (let round = 0; round < 2; round += 1) {
    const events = it.runtime.events(signal)[Symbol.asyncIterator]();
    assert.equal((await events.next()).value?.type, "listening");
    const [identity] = helper();
    assert.ok(identity);
    process.kill(identity.pid, "SIGKILL");
    await rejectsWith("UNAVAILABLE", events.next());
  }
  const stop = new AbortController();
  const events = it.runtime.events(stop.signal)[Symbol.asyncIterator]();
  await events.next();
  stop.abort();
  assert.equal((await events.next()).done, true);
  await waitFor(() => helper().length === 0, { what: "no helper is left", limitMs: 90_000 });
});

test("while containerd restarts, calls fail with UNAVAILABLE, and the same containers exist afterwards", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  const { id } = await it.runtime.run(it.spec(["sleep", "1000"]), signal);
  const events = it.runtime.events(signal)[Symbol.asyncIterator]();
  assert.equal((await events.next()).value?.type, "listening");
  const before = await it.runtime.inspect(id, signal);
  await it.host.containerd.stopDaemon();
  await rejectsWith("UNAVAILABLE", drain(events));
  await rejectsWith("UNAVAILABLE", it.runtime.list(signal));
  await rejectsWith("UNAVAILABLE", it.runtime.version(signal));
  await rejectsWith("UNAVAILABLE", it.runtime.run(it.spec(["true"]), signal));
  await rejectsWith("UNAVAILABLE", it.runtime.events(signal)[Symbol.asyncIterator]().next());
  await startContainerd({ dir: join(it.host.dir, "c") });
  assert.deepEqual(await it.runtime.inspect(id, signal), before);
  await it.runtime.remove([id], signal);
});

test("ends a shim that lost its container in a restart of containerd, and no other", async (t) => {
  const { signal } = t;
  let aheadMs = 0;
  const ended: string[] = [];
  const it = await openNerdctl({
    clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs },
    onShimEnded: (id) => ended.push(id),
  });
  t.after(() => it.close());
  const kept = await it.runtime.run(it.spec(["sleep", "1000"]), signal);
  // A runtime of another agent, in the same namespace.
  const other = new NerdctlRuntime({
    ...it.options,
    instance: "other",
    stateDir: join(it.host.dir, "other"),
  });
  const foreign = await other.run(it.spec(["sleep", "1000"]), signal);
  const shims = () =>
    findProcesses((argv) => argv.includes(it.host.namespace) && argv.includes("-id")).map(({ pid }) => pid);
  const before = new Set(shims());
  assert.equal(before.size, 2);
  const listAfter = async (ms: number) => {
    aheadMs += ms;
    return it.runtime.list(signal);
  };
  // The moment of a start that leaves a shim behind differs between hosts, so containerd is stopped at several.
  let containerd = it.host.containerd;
  for (let waitMs = 300; ended.length === 0; waitMs += 50) {
    assert.ok(waitMs < 2_000, "a restart of containerd left a shim");
    const specs = Array.from({ length: 6 }, () => it.spec(["sleep", "1000"]));
    const runs = Promise.allSettled(specs.map((spec) => it.runtime.run(spec, signal)));
    await delay(waitMs);
    process.kill(containerd.identity.pid, "SIGKILL");
    await containerd.stopDaemon();
    await runs;
    containerd = await startContainerd({ dir: join(it.host.dir, "c") });
    const made = (await listAfter(0)).filter(({ id }) => id !== kept.id);
    await it.runtime.remove(
      made.map(({ id }) => id),
      signal,
    );
    await listAfter(60_000);
    assert.deepEqual(ended, [], "a shim was ended when it was first seen unused");
    await listAfter(120_000);
  }
  // A shim of the last round may have become unused after the last sweep, so sweeps continue.
  const onlyKeptShims = async () => {
    await listAfter(60_000);
    return isDeepStrictEqual(new Set(shims()), before);
  };
  await waitFor(onlyKeptShims, {
    what: "only the shims of running containers are left",
    limitMs: 60_000,
    explain: () => `before: ${[...before].join()}; now: ${shims().join()}; ended: ${ended.join()}`,
  });
  // containerd removes the files of a lost shim at its own next start.
  await containerd.stopDaemon();
  await startContainerd({ dir: join(it.host.dir, "c") });
  const bundles = join(it.host.dir, "c/state/io.containerd.runtime.v2.task", it.host.namespace);
  await waitFor(() => readdirSync(bundles).length === 2, {
    what: "containerd has cleaned up after the shims",
    limitMs: 60_000,
    explain: () => readdirSync(bundles).join(),
  });
  for (const [runtime, { id }] of [
    [it.runtime, kept],
    [other, foreign],
  ] as const)
    assert.equal((await runtime.inspect(id, signal))?.state, "running");
  await other.remove([foreign.id], signal);
  await other.close();
});

test("without nerdctl's own state, as after a reboot with tmpfs, containers are still listed, stopped and removed", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  const ids = (
    await Promise.all([1, 2, 3].map(() => it.runtime.run(it.spec(["sleep", "1000"]), signal)))
  ).map(({ id }) => id);
  rmSync(it.options.stateDir, { recursive: true });
  const runtime = new NerdctlRuntime(it.options);
  assert.deepEqual((await runtime.list(signal)).map(({ id }) => id).sort(), [...ids].sort());
  await runtime.stop(ids[0] ?? "", 0, signal);
  await runtime.remove(ids, signal);
  assert.deepEqual(await runtime.list(signal), []);
});

test("a removed container leaves nothing behind: no snapshot, bundle, file or cgroup", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  const ctr = (...args: string[]) =>
    run("ctr", ["--address", it.host.containerd.address, "--namespace", it.host.namespace, ...args]);
  // containerd deletes the directories of removed snapshots when it next collects garbage. It waits about 50 times as long
  // as its collections take on average, except that the end of a lease can collect at once.
  const snapshots = async () => {
    await ctr("leases", "create", "--id", "collect");
    await ctr("leases", "delete", "--sync", "collect");
    return readdirSync(join(it.host.dir, "c/root/io.containerd.snapshotter.v1.overlayfs/snapshots"));
  };
  const before = await snapshots();
  const specs = [it.spec(["sleep", "1000"]), it.spec(["true"]), it.spec(["/nope"])];
  const results = await Promise.allSettled(specs.map((spec) => it.runtime.run(spec, signal)));
  const ids = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.id] : []));
  assert.equal(ids.length, 2);
  await it.runtime.remove(ids, signal);
  const left = findFiles(it.options.stateDir).filter(
    (path) => ids.some((id) => path.includes(id)) || specs.some(({ name }) => path.includes(name)),
  );
  assert.deepEqual(left, []);
  assert.deepEqual(
    readdirSync(join(it.host.dir, "c/state/io.containerd.runtime.v2.task", it.host.namespace)),
    [],
  );
  assert.deepEqual((await ctr("containers", "list", "--quiet")).stdout, "");
  assert.deepEqual(await snapshots(), before);
  for (const root of ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"]) {
    for (const id of ids) assert.equal(existsSync(join(root, it.host.namespace, id)), false);
  }
});

async function drain(events: AsyncIterator<RuntimeEvent>): Promise<void> {
  for (let next = await events.next(); !next.done; next = await events.next());
}

function findFiles(dir: string): readonly string[] {
  return readdirSync(dir, { recursive: true, encoding: "utf8" });
}
