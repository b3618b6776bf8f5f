import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type TaskResourceUsage, TaskState } from "@forage/proto/plugins/drivers/proto/driver";
import type { ServiceError } from "@grpc/grpc-js";
import { until } from "../until.ts";
import { DriverUnderTest, PipeReader } from "./driver-under-test.ts";

const LIMIT = { timeout: 120_000 };
const sh = (script: string) => ({ command: "sh", args: ["-c", script] });

let driver: DriverUnderTest;
before(async () => {
  driver = await DriverUnderTest.start();
}, LIMIT);
after(() => driver?.close(), LIMIT);

test("a task starts, writes to Nomad's pipes, is stopped and leaves nothing behind", LIMIT, async () => {
  const task = driver.task(sh("echo out; echo err >&2; trap 'exit 3' TERM; while :; do sleep 0.05; done"));
  const [stdout, stderr] = [new PipeReader(task.stdoutPath), new PipeReader(task.stderrPath)];
  await driver.startTask(task);
  await until("the output arrives", () => stdout.text === "out\n" && stderr.text === "err\n");
  const { task: seen } = await driver.call("inspectTask", { taskId: task.id });
  assert.equal(seen?.state, TaskState.RUNNING);
  assert.equal(seen?.completedAt?.seconds, -62_135_596_800n);
  const { response } = driver.wait(task.id);
  await driver.call("stopTask", { taskId: task.id, timeout: { seconds: 30n, nanos: 0 }, signal: "SIGTERM" });
  assert.deepEqual(await response, { result: { exitCode: 3, signal: 0, oomKilled: false }, err: "" });
  assert.equal((await driver.call("inspectTask", { taskId: task.id })).task?.state, TaskState.EXITED);
  await driver.call("destroyTask", { taskId: task.id, force: false });
  assert.equal((await driver.host.nerdctl(["ps", "-aq"])).stdout, "");
  await assert.rejects(driver.call("inspectTask", { taskId: task.id }), {
    code: 2,
    details: "task not found for given id",
  });
});

const seconds = (count: number) => ({ seconds: BigInt(count), nanos: 0 });
const SLEEP = { command: "sleep", args: ["1000"] };

async function taskContainers(): Promise<string> {
  return (await driver.host.nerdctl(["ps", "-aq"])).stdout.trim();
}

test("a task is started only once, and calls for unknown tasks return an error", LIMIT, async () => {
  const task = driver.task(SLEEP);
  await driver.startTask(task);
  await assert.rejects(driver.call("startTask", { task }), { code: 6 });
  const unknown = { taskId: "nobody/web/00000000" };
  const notFound = { code: 2, details: "task not found for given id" };
  await assert.rejects(driver.call("waitTask", unknown), notFound);
  await assert.rejects(driver.call("inspectTask", unknown), notFound);
  await assert.rejects(driver.call("destroyTask", { ...unknown, force: true }), notFound);
  await assert.rejects(driver.call("signalTask", { ...unknown, signal: "SIGHUP" }), notFound);
  await assert.rejects(driver.call("execTask", { ...unknown, command: ["true"] }), notFound);
  await driver.call("stopTask", { ...unknown, timeout: seconds(1) });
  // Destroying a running task requires force.
  await assert.rejects(driver.call("destroyTask", { taskId: task.id, force: false }), { code: 9 });
  const { response } = driver.wait(task.id);
  await driver.call("destroyTask", { taskId: task.id, force: true });
  assert.equal((await response).result?.exitCode, 137);
  assert.equal(await taskContainers(), "");
});

test("a failed start leaves nothing behind, and only a temporary failure is retryable", LIMIT, async () => {
  const broken = driver.task({ command: "/no/such/program" });
  await assert.rejects(driver.call("startTask", { task: broken }), { code: 3, details: /no such file/ });
  const task = driver.task({ ...SLEEP, image: "127.0.0.1:9/no/registry:1" });
  await assert.rejects(driver.call("startTask", { task }), (error: ServiceError) => {
    assert.equal(error.code, 9);
    assert.equal(error.metadata.get("grpc-status-details-bin").length, 1, error.details);
    return true;
  });
  const elsewhere = driver.task(SLEEP, { stdoutPath: "/etc/hostname" });
  await assert.rejects(driver.call("startTask", { task: elsewhere }), { code: 3, details: /neither a pipe/ });
  assert.equal(await taskContainers(), "");
  // The same id can be reused after a failure.
  await driver.startTask({ ...driver.task(SLEEP), id: broken.id });
  await driver.stopAndDestroy(broken.id);
});

test("many wait for a task, one disconnects, and late ones get the same result", LIMIT, async () => {
  const task = driver.task({
    command: "sh",
    args: ["-c", "while [ ! -e /local/go ]; do sleep 0.05; done; exit 7"],
  });
  await driver.startTask(task);
  const left = driver.wait(task.id);
  const waits = Array.from({ length: 20 }, () => driver.wait(task.id).response);
  left.call.cancel();
  await assert.rejects(left.response, { code: 1 });
  assert.equal((await driver.call("inspectTask", { taskId: task.id })).task?.state, TaskState.RUNNING);
  writeFileSync(join(task.allocDir, "web/local/go"), "");
  const expected = { result: { exitCode: 7, signal: 0, oomKilled: false }, err: "" };
  for (const result of await Promise.all(waits)) assert.deepEqual(result, expected);
  assert.deepEqual(await driver.wait(task.id).response, expected);
  await driver.call("stopTask", { taskId: task.id, timeout: seconds(1) });
  await driver.call("destroyTask", { taskId: task.id, force: false });
});

test("signals reach the task, and SIGKILL follows the time limit of a stop", LIMIT, async () => {
  const task = driver.task(
    sh("trap 'echo got' USR1; trap '' TERM; echo ready; while :; do sleep 0.05; done"),
  );
  const stdout = new PipeReader(task.stdoutPath);
  await driver.startTask(task);
  await until("the task is ready", () => /ready/.test(stdout.text));
  await driver.call("signalTask", { taskId: task.id, signal: "usr1" });
  await until("the signal arrives", () => /got/.test(stdout.text));
  await assert.rejects(driver.call("signalTask", { taskId: task.id, signal: "SIGNOPE" }), { code: 3 });
  await driver.call("stopTask", { taskId: task.id, timeout: { seconds: 0n, nanos: 2e8 }, signal: "SIGTERM" });
  assert.deepEqual((await driver.wait(task.id).response).result, {
    exitCode: 137,
    signal: 9,
    oomKilled: false,
  });
  await assert.rejects(driver.call("signalTask", { taskId: task.id, signal: "SIGHUP" }), { code: 9 });
  await driver.stopAndDestroy(task.id);
  // The image's own stop signal applies if Nomad names none.
  const plain = driver.task(sh("trap 'exit 5' TERM; while :; do sleep 0.05; done"));
  await driver.startTask(plain);
  await driver.call("stopTask", { taskId: plain.id, timeout: seconds(20) });
  assert.equal((await driver.wait(plain.id).response).result?.exitCode, 5);
  await driver.stopAndDestroy(plain.id);
});

test("reports a task that uses too much memory as OOM-killed", LIMIT, async () => {
  const linuxResources = { memoryLimitBytes: 16n << 20n };
  const task = driver.task(sh("sleep 0.3; tail /dev/zero"), {
    resources: { linuxResources, allocatedResources: undefined, ports: [] } as never,
  });
  const events = driver.client.taskEvents({});
  const messages: string[] = [];
  events.on("data", ({ message }: { message: string }) => messages.push(message));
  events.on("error", () => undefined);
  await driver.startTask(task);
  const { result } = await driver.wait(task.id).response;
  assert.deepEqual([result?.oomKilled, result?.exitCode], [true, 137]);
  await until("the event arrives", () => messages.some((it) => /memory/.test(it)));
  events.cancel();
  await driver.stopAndDestroy(task.id);
});

test("statistics start at once, measure the task's usage, and end with it", LIMIT, async () => {
  const task = driver.task(sh("while [ ! -e /local/go ]; do :; done"));
  await driver.startTask(task);
  const stream = driver.client.taskStats({
    taskId: task.id,
    collectionInterval: { seconds: 0n, nanos: 2e8 },
  });
  let samples = 0;
  for await (const { stats } of stream) {
    samples += 1;
    const { cpu, memory } = stats?.aggResourceUsage ?? {};
    assert.ok(cpu && memory && stats.timestamp);
    assert.ok(cpu.measuredFields.length >= 4 && memory.measuredFields.length >= 3);
    assert.ok(memory.usage > 0n && memory.rss > 0n);
    if (samples < 3) continue;
    assert.ok(cpu.percent > 5 && cpu.totalTicks > 0, `${cpu.percent} %`);
    const processes: TaskResourceUsage[] = Object.values(stats.resourceUsageByPid);
    assert.ok(processes.some((it) => (it.cpu?.percent ?? 0) > 5 && (it.memory?.rss ?? 0n) > 0n));
    writeFileSync(join(task.allocDir, "web/local/go"), "");
  }
  assert.ok(samples >= 3);
  assert.equal((await driver.wait(task.id).response).result?.exitCode, 0);
  await driver.stopAndDestroy(task.id);
});

test("applies limits, mounts, devices, hosts and labels to the container", LIMIT, async (t) => {
  const volume = join(driver.host.dir, "shared");
  const script = [
    "cat /proc/self/limits | grep 'open files'",
    "df -k /dev/shm | tail -1",
    "ls -l /dev/other; cat /etc/resolv.conf /etc/hosts; id -u; hostname",
    "grep Cpus_allowed_list /proc/self/status; grep ' /volume ' /proc/self/mountinfo; touch /volume/x || echo read-only",
    "touch /local/l /alloc/a /secrets/s /named/n /t/t; cat /proc/sys/net/core/somaxconn; sleep 1000",
  ].join("; ");
  mkdirSync(volume);
  const mount = (...args: string[]) => execFileSync("mount", args);
  mount("-t", "tmpfs", "none", volume);
  t.after(() => execFileSync("umount", ["--recursive", volume]));
  mount("--make-shared", volume);
  const task = driver.task(
    {
      ...sh(script),
      ...{ hostname: "named", networkMode: "none", shmSizeBytes: 8 << 20, pidsLimit: 50, oomScoreAdj: 10 },
      ulimits: [{ name: "nofile", soft: 100, hard: 200 }],
      sysctl: { "net.core.somaxconn": "77" },
      extraHosts: [{ name: "db.test", address: "10.9.8.7" }],
      dns: { servers: ["10.1.1.1"], searches: ["a.test"], options: [] },
      mounts: [
        { type: "volume", source: "v1", target: "/named", readonly: false },
        { type: "tmpfs", target: "/t", sizeBytes: 1 << 20 },
      ],
      labels: { team: "a" },
    },
    {
      mounts: [{ hostPath: volume, taskPath: "/volume", readonly: true, propagationMode: "host-to-task" }],
      devices: [{ hostPath: "/dev/zero", taskPath: "/dev/other", cgroupPermissions: "r" }],
      resources: {
        linuxResources: {
          memoryLimitBytes: 64n << 20n,
          cpuShares: 300n,
          cpusetCpus: "0",
          PercentTicks: 0.25,
        },
        allocatedResources: { memory: { memoryMb: 32n, memoryMaxMb: 64n }, networks: [] },
        ports: [],
      } as never,
    },
  );
  const stdout = new PipeReader(task.stdoutPath);
  await driver.startTask(task);
  await until("the script is done", () => /\n77\n/.test(stdout.text));
  const { text } = stdout;
  mkdirSync(join(volume, "later"));
  mount("-t", "tmpfs", "none", join(volume, "later"));
  writeFileSync(join(volume, "later/file"), "");
  const seen = await driver.call("execTask", { taskId: task.id, command: ["ls", "/volume/later/file"] });
  assert.equal(seen.result?.exitCode, 0, seen.stderr.toString());
  for (const expected of [
    ...[
      /open files +100 +200/,
      /8192/,
      /crw.* 1, +5 .*\/dev\/other/,
      /nameserver 10\.1\.1\.1\nsearch a\.test/,
    ],
    ...[/10\.9\.8\.7\tdb\.test/, /\n0\nnamed\n/, /Cpus_allowed_list:\t0\n/, / master:\d+/, /read-only/],
  ])
    assert.match(text, expected);
  const { driver: status } = await driver.call("inspectTask", { taskId: task.id });
  const cgroup = readFileSync(`/proc/${status?.attributes.pid}/cgroup`, "utf8");
  const memory = /:memory:(.*)/.exec(cgroup)?.[1];
  if (memory !== undefined) {
    const read = (file: string) => readFileSync(join("/sys/fs/cgroup/memory", memory, file), "utf8").trim();
    assert.equal(read("memory.limit_in_bytes"), String(64 << 20));
    assert.equal(read("memory.soft_limit_in_bytes"), String(32 << 20));
    assert.equal(readFileSync(join("/sys/fs/cgroup/cpu", memory, "cpu.shares"), "utf8").trim(), "300");
  }
  for (const path of ["web/local/l", "alloc/a", "web/secrets/s"]) readFileSync(join(task.allocDir, path));
  const { stdout: labels } = await driver.host.nerdctl(["ps", "--format", "{{json .Labels}}"]);
  assert.match(labels, /team=a/);
  assert.match(labels, /com\.hashicorp\.nomad\.job_name=job/);
  await driver.stopAndDestroy(task.id);
});

test(
  "a task shares the namespaces of the host that its job names, and has swap and a soft limit",
  LIMIT,
  async () => {
    // A container has the message queues of its IPC namespace.
    const ipc = existsSync("/dev/mqueue");
    const task = driver.task(
      {
        ...SLEEP,
        ...{ hostNamespaces: ipc ? ["pid", "ipc"] : ["pid"], cgroupNamespace: "private" },
        ...{ memoryReservationBytes: 8 << 20, memorySwapBytes: 128 << 20 },
      },
      { resources: { linuxResources: { memoryLimitBytes: 64n << 20n }, ports: [] } as never },
    );
    await driver.startTask(task);
    const { stdout } = await driver.call("execTask", {
      taskId: task.id,
      command: ["sh", "-c", "for it in pid ipc cgroup; do readlink /proc/self/ns/$it; done"],
    });
    const own = ["pid", "ipc", "cgroup"].map((it) => readlinkSync(`/proc/self/ns/${it}`));
    const shared = stdout
      .toString()
      .trim()
      .split("\n")
      .map((link, i) => link === own[i]);
    assert.deepEqual(shared, [true, ipc, false]);
    const { driver: status } = await driver.call("inspectTask", { taskId: task.id });
    const cgroup = /:memory:(.*)/.exec(readFileSync(`/proc/${status?.attributes.pid}/cgroup`, "utf8"))?.[1];
    if (cgroup !== undefined) {
      const read = (file: string) => readFileSync(join("/sys/fs/cgroup/memory", cgroup, file), "utf8").trim();
      assert.equal(read("memory.soft_limit_in_bytes"), String(8 << 20));
      assert.equal(read("memory.memsw.limit_in_bytes"), String(128 << 20));
    }
    await driver.stopAndDestroy(task.id);
  },
);

test(
  "tasks on a terminal and tasks of a shim's own runtime write to Nomad's pipes as well",
  LIMIT,
  async () => {
    const script = "test -t 1 && echo terminal; echo out; echo err >&2; sleep 1000";
    const terminal = driver.task({ ...sh(script), tty: true });
    const shim = driver.task({ ...sh(script), runtime: "io.containerd.runc.v2" });
    const [merged, stdout, stderr] = [terminal.stdoutPath, shim.stdoutPath, shim.stderrPath].map(
      (it) => new PipeReader(it),
    );
    assert.ok(merged && stdout && stderr);
    await Promise.all([driver.startTask(terminal), driver.startTask(shim)]);
    await until("the terminal's output arrives", () => merged.text === "terminal\r\nout\r\nerr\r\n");
    await until("the shim's output arrives", () => stdout.text === "out\n" && stderr.text === "err\n");
    await Promise.all([driver.stopAndDestroy(terminal.id), driver.stopAndDestroy(shim.id)]);
  },
);

test(
  "a task that needs what the host's kernel lacks is refused with the path and the reason",
  LIMIT,
  async (t) => {
    if (existsSync("/sys/kernel/security/apparmor/profiles")) return t.skip("this host has AppArmor");
    const task = driver.task({ ...SLEEP, appArmorProfile: "web" });
    await assert.rejects(driver.call("startTask", { task }), {
      code: 3,
      details: "config.apparmor_profile: this host has no AppArmor",
    });
  },
);

test("a reader that stalls delays only its own task, and continues when it reads again", LIMIT, async () => {
  const noisy = driver.task(
    sh("i=0; while [ $i -lt 30000 ]; do echo $i; i=$((i+1)); done; echo done >&2; sleep 1000"),
  );
  const quiet = driver.task(sh("echo hello; sleep 1000"), { stderrPath: "/dev/null" });
  const [stalled, errors, stdout] = [noisy.stdoutPath, noisy.stderrPath, quiet.stdoutPath].map(
    (it) => new PipeReader(it),
  );
  assert.ok(stalled && errors && stdout);
  await driver.startTask(noisy);
  await driver.startTask(quiet);
  await until("the other task writes", () => stdout.text === "hello\n");
  assert.equal(errors.text, "");
  stalled.close();
  const back = new PipeReader(noisy.stdoutPath);
  await until("the task goes on", () => (back.text.length > 0 || true) && errors.text === "done\n");
  assert.match(back.text, /\n29999\n$/);
  assert.match(back.text, /^0\n1\n/);
  await driver.stopAndDestroy(noisy.id);
  await driver.stopAndDestroy(quiet.id);
});
