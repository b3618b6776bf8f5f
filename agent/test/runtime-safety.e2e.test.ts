import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parsePlaces } from "../src/runtime/cgroup/parse-cgroup.ts";
import type { ContainerSpec } from "../src/runtime/runtime.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { rejectsWith, runToEnd } from "./runtime-contract.ts";
import { until } from "./until.ts";

const ECHO_IMAGE = "localhost/forage/echo:1";
const SECRET = "s3cr3t-value";

let it: NerdctlUnderTest;
before(async () => {
  it = await openNerdctl();
  await it.host.loadImage({
    name: ECHO_IMAGE,
    entrypoint: ["/bin/echo", "entry"],
    cmd: ["cmd1", "cmd2"],
    env: ["FROM_IMAGE=1"],
  });
});
after(() => it?.close());

/** Runs a container to its end and returns its output. */
async function logOf(spec: ContainerSpec, signal: AbortSignal): Promise<string> {
  const { id } = await runToEnd(it, spec, signal);
  await it.runtime.remove([id], signal);
  return readFileSync(spec.logFile, "utf8");
}

for (const [what, change, expected] of [
  ["neither", {}, "entry cmd1 cmd2\n"],
  ["args", { args: ["a", "b"] }, "entry a b\n"],
  ["args that begin with dashes", { args: ["--", "--privileged", "-v"] }, "entry -- --privileged -v\n"],
  ["command", { command: ["echo", "c"] }, "c\n"],
  ["command and args", { command: ["echo", "c"], args: ["--", "--rm", ""] }, "c -- --rm \n"],
] as const) {
  test(`command and args work as in Kubernetes: ${what}`, async ({ signal }) => {
    assert.equal(await logOf(it.spec([], { image: ECHO_IMAGE, ...change }), signal), expected);
  });
}

for (const [what, change] of [
  ["command", { command: ["--privileged", "sleep", "9"] }],
  ["command after dashes", { command: ["--", "--privileged"] }],
  ["working directory", { workingDir: "--privileged" }],
] as const) {
  test(`an option in a ${what} is not applied as an option`, async ({ signal }) => {
    await rejectsWith("START_FAILED", it.runtime.run(it.spec(["sleep", "9"], change), signal));
    assert.deepEqual(await it.runtime.list(signal), []);
  });
}

test("labels that look like options remain labels", async ({ signal }) => {
  const spec = it.spec(["sleep", "9"], {
    labels: { "--privileged": "true", a: "--rm", b: "x\ny,forage.dev/instance=z" },
  });
  const { id } = await it.runtime.run(spec, signal);
  const { labels } = (await it.runtime.inspect(id, signal)) ?? {};
  assert.deepEqual(labels, { ...spec.labels, "forage.dev/instance": it.host.name });
  const [native] = JSON.parse((await it.host.nerdctl(["inspect", "--mode", "native", id])).stdout);
  assert.equal(native.Labels["nerdctl/privileged"], undefined);
  await it.runtime.remove([id], signal);
});

const ENV = [
  { name: "PLAIN", value: `${SECRET} with  spaces, "quotes" and $HOME` },
  { name: "EMPTY", value: "" },
  { name: "PEM", value: "-----BEGIN-----\nabc\n-----END-----\n" },
  { name: "TRAILING", value: "x  " },
  { name: "LONG", value: "y".repeat(100_000) },
  { name: "FROM_IMAGE", value: "2" },
  { name: "#HASH", value: "h" },
  { name: "PATH", value: "/own:/bin" },
  { name: "LD_PRELOAD", value: "/own/lib.so" },
  { name: "CONTAINERD_ADDRESS", value: "/own/containerd.sock" },
  { name: "NERDCTL_TOML", value: "/own/nerdctl.toml" },
];

test("every value of the environment arrives unchanged", async ({ signal }) => {
  const dump = ["sh", "-c", "cat /proc/1/environ | tr '\\0' '\\1'"];
  const text = await logOf(it.spec(dump, { image: ECHO_IMAGE, env: ENV }), signal);
  const seen = new Set(text.split("\u0001"));
  for (const { name, value } of ENV) assert.ok(seen.has(`${name}=${value}`), name);
});

test("no value appears in arguments or the agent's directories, and only unusual ones in the hooks' environment", async ({
  signal,
}) => {
  const spy = join(it.host.dir, "spy");
  const seen = join(it.host.dir, "seen");
  writeFileSync(
    spy,
    `#!/bin/sh\nprintf '%s\\n' "$@" >>${seen}\nenv >>${seen}.env\nexec ${it.host.nerdctlPath} "$@"\n`,
    { mode: 0o755 },
  );
  process.env.FORAGE_TEST_AGENT_SECRET = "agents-own";
  const own = await openNerdctl({ nerdctlPath: spy });
  try {
    const { id } = await own.runtime.run(own.spec(["sleep", "9"], { env: ENV }), signal);
    assert.equal(readFileSync(seen, "utf8").includes(SECRET), false);
    assert.equal(readFileSync(seen, "utf8").includes("BEGIN"), false);
    const inherited = readFileSync(`${seen}.env`, "utf8");
    assert.equal(inherited.includes(SECRET) || inherited.includes("agents-own"), false);
    assert.equal(inherited.includes("BEGIN"), true);
    const [native] = JSON.parse((await own.host.nerdctl(["inspect", "--mode", "native", id])).stdout);
    for (const { env } of [...native.Spec.hooks.createRuntime, ...native.Spec.hooks.poststop]) {
      // The spy itself sets PWD, and its shell drops names that it doesn't support.
      const names = env.map((variable: string) => variable.split("=")[0]).sort();
      assert.deepEqual([...new Set(names)], ["GOGC", "HOME", "LONG", "PATH", "PEM", "PWD", "TRAILING"]);
      assert.ok(env.every((variable: string) => !variable.includes("/own")));
    }
  } finally {
    delete process.env.FORAGE_TEST_AGENT_SECRET;
    await own.close();
  }
});

test("rejects a value that could only be passed under a name that tools obey", async ({ signal }) => {
  const spec = it.spec(["sleep", "9"], { env: [{ name: "LD_PRELOAD", value: "/x.so\n" }] });
  await rejectsWith("START_FAILED", it.runtime.run(spec, signal));
});

test("the log contains both streams, appended, and is readable by root only", async ({ signal }) => {
  // The container runs until both are there, because the shim may close a shared log with the first stream that ends.
  const spec = it.spec(["sh", "-c", "echo out; echo err >&2; exec sleep 1000"]);
  writeFileSync(spec.logFile, "before\n", { mode: 0o600 });
  const { id } = await it.runtime.run(spec, signal);
  const lines = (): string[] => readFileSync(spec.logFile, "utf8").split("\n").sort();
  await until("both streams are in the log", () => lines().length === 4);
  assert.deepEqual(lines(), ["", "before", "err", "out"]);
  await it.runtime.remove([id], signal);
  const other = it.spec(["true"], { logFile: join(it.logDir, "a b%25?#.log") });
  await logOf(other, signal);
  assert.equal(statSync(other.logFile).mode & 0o777, 0o600);
  await rejectsWith(
    "START_FAILED",
    it.runtime.run(it.spec(["true"], { logFile: "/no/such/dir/x.log" }), signal),
  );
});

test("binds are read-only or writable, work for files, and never create a source", async ({ signal }) => {
  const dir = join(it.host.dir, "bound");
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "hosts"), "1.2.3.4 own\n");
  const binds = [
    { source: join(dir, "hosts"), target: "/etc/hosts", readOnly: true },
    { source: dir, target: "/data", readOnly: false },
    { source: dir, target: "/fixed", readOnly: true },
  ];
  const script = "exec 2>&1; cat /etc/hosts; echo 1 >/data/new; echo 2 >/fixed/other; hostname";
  const text = await logOf(it.spec(["sh", "-c", script], { binds }), signal);
  assert.match(text, /^1\.2\.3\.4 own\n.*Read-only file system\nweb\n$/s);
  assert.equal(existsSync(join(dir, "other")), false);
  const missing = [{ source: join(dir, "missing"), target: "/x", readOnly: true }];
  await rejectsWith("START_FAILED", it.runtime.run(it.spec(["true"], { binds: missing }), signal));
  assert.equal(existsSync(join(dir, "missing")), false);
});

test("enforces limits, and reports an OOM kill", async ({ signal }) => {
  const limits = { memoryLimitBytes: 16 * 1024 * 1024, cpuLimitMilli: 250, cpuShares: 77 };
  const { id } = await it.runtime.run(it.spec(["sleep", "9"], limits), signal);
  const { pid } = (await it.runtime.inspect(id, signal)) ?? {};
  const { v1, v2 } = parsePlaces(readFileSync(`/proc/${pid}/cgroup`, "utf8"));
  const read = (controller: string, name: string) =>
    readFileSync(join("/sys/fs/cgroup", controller, v1.get(controller) ?? "", name), "utf8").trim();
  if (v1.has("memory")) {
    assert.deepEqual(
      [read("memory", "memory.limit_in_bytes"), read("cpu", "cpu.cfs_quota_us"), read("cpu", "cpu.shares")],
      ["16777216", "25000", "77"],
    );
  } else {
    assert.equal(readFileSync(join("/sys/fs/cgroup", v2 ?? "", "memory.max"), "utf8").trim(), "16777216");
    assert.equal(readFileSync(join("/sys/fs/cgroup", v2 ?? "", "cpu.max"), "utf8").trim(), "25000 100000");
  }
  await it.runtime.remove([id], signal);
  const hungry = it.spec(
    ["sh", "-c", "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo $x | wc -c"],
    limits,
  );
  const { ended, id: dead } = await runToEnd(it, hungry, signal);
  assert.ok((await it.runtime.oomKills(dead)) > 0);
  assert.notEqual(ended.exitCode, 0);
  await it.runtime.remove([dead], signal);
});

test("does not list containers of others in the same namespace", async ({ signal }) => {
  const { networkNamespace, image } = it.spec([]);
  const { stdout } = await it.host.nerdctl([
    "run",
    "-d",
    `--network=ns:${networkNamespace}`,
    image,
    "sleep",
    "9",
  ]);
  assert.deepEqual(await it.runtime.list(signal), []);
  await it.host.nerdctl(["rm", "-f", stdout.trim()]);
});
