import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { instancePaths, readInstance } from "../instance/instance.ts";
import { lookUp } from "../instance/look-up.ts";
import { readRunning } from "../instance/program.ts";
import { listMounts } from "../lib/mounts.ts";
import { findNetworkRemains } from "../lib/network-remains.ts";
import { findProcesses } from "../lib/process-identity.ts";
import { type RunResult, run } from "../lib/run.ts";
import { type TestHost, withHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { freeAddresses } from "../system/system.ts";

interface UpAnswer {
  readonly grpc: string;
  readonly http: string;
  readonly destination: string;
  readonly ca: string;
  readonly token: string;
  readonly node: string;
  readonly data: string;
  readonly ingress?: string;
}

const hack = join(import.meta.dirname, "..");

test("hack/up deploys the example, a second run changes nothing, and hack/down leaves nothing", async (t) => {
  const host = await withHost(t);
  const { flags, data } = await anInstance(host);
  const first = await up(flags);
  assert.match(await page(first), /^Hello from Forage: this is pod hello-/);
  assert.match(readFileSync(first.ca, "utf8"), /BEGIN CERTIFICATE/);
  assert.equal(statSync(first.token).mode & 0o777, 0o600);
  const before = programsOf(data);

  assert.deepEqual(await up(flags), first);
  assert.deepEqual(programsOf(data), before);

  const id = idOf(data);
  await down(data);
  await assertNothingLeft(id, data);
  await down(data);
});

test("instances run beside each other, and one that was killed can be removed alone", async (t) => {
  const host = await withHost(t);
  const [one, two] = [await anInstance(host), await anInstance(host)];
  const answers = [await up(one.flags), await up(two.flags)] as const;
  const id = idOf(one.data);
  assert.notEqual(id, idOf(two.data));

  for (const { pid } of findProcesses((argv) => argv.some((word) => word.startsWith(one.data))))
    process.kill(pid, "SIGKILL");
  await down(one.data);

  await assertNothingLeft(id, one.data);
  assert.match(await page(answers[1]), /^Hello from Forage/);
  await down(two.data);
});

test("a daemon that dies restarts by itself, and hack/up starts everything after a crash", async (t) => {
  const host = await withHost(t);
  const { flags, data } = await anInstance(host);
  const answer = await up([...flags, "--no-example", "--workspaces"]);
  assert.equal(await statusOf(answer.ingress, "none.ws.localhost"), 404);
  const { programs } = instancePaths(data);
  const killed = readRunning(programs, "agent");
  process.kill(killed?.identity.pid ?? 0, "SIGKILL");
  await waitFor(() => (readRunning(programs, "agent")?.restarts ?? 0) > 0, {
    what: "the agent is back",
    limitMs: 60_000,
  });

  for (const { identity } of programsOf(data)) process.kill(identity.pid, "SIGKILL");
  assert.deepEqual(await up(flags), answer);
  assert.match(await page(answer), /^Hello from Forage/);
});

test("only our own objects are removed from the host's containerd", async (t) => {
  const host = await withHost(t);
  const { flags, data } = await anInstance(host);
  const answer = await up([...flags, "--containerd", host.containerd.address]);
  assert.match(await page(answer), /^Hello from Forage/);
  const namespaces = async () =>
    (await ctr(host, "namespaces", "list", "--quiet")).stdout.trim().split("\n").sort();
  assert.deepEqual(await namespaces(), [`forage-${idOf(data)}`, host.namespace].sort());

  const id = idOf(data);
  await down(data);

  assert.deepEqual(await namespaces(), [host.namespace]);
  await assertNothingLeft(id, data);
});

test("each fault is reported with its remedy", async (t) => {
  const host = await withHost(t);
  const { flags } = await anInstance(host);
  const other = createServer().listen(Number(flags[3]?.split(":")[1]), "127.0.0.1");
  t.after(() => void other.close());
  await new Promise((resolve) => other.once("listening", resolve));

  const taken = await command("up", flags);
  assert.equal(taken.exitCode, 1);
  assert.match(
    taken.stderr,
    new RegExp(`is taken by node \\S+ \\(pid ${process.pid}\\)\n {2}what to do: .*--grpc`),
  );
  const unknown = await command("up", ["--frobnicate"]);
  assert.deepEqual([unknown.exitCode, unknown.stdout], [2, ""]);
  assert.match(unknown.stderr, /frobnicate/);
  const gone = await command("up", [...flags, "--containerd", join(host.dir, "absent.sock")]);
  assert.match(gone.stderr, /no containerd answers on .*absent.sock/);
});

/**
 * Returns flags for a separate instance below the host's directory. It is removed at the end even if the test fails.
 */
async function anInstance(host: TestHost): Promise<{ flags: string[]; data: string }> {
  const data = mkdtempSync(join(host.dir, "i"));
  const [grpc = "", http = "", destination = ""] = await freeAddresses(3);
  return { data, flags: ["--data", data, "--grpc", grpc, "--http", http, "--destination", destination] };
}

async function up(flags: readonly string[]): Promise<UpAnswer> {
  const { stdout, stderr, exitCode } = await command("up", [...flags, "--json"]);
  assert.equal(exitCode, 0, stderr);
  return JSON.parse(stdout) as UpAnswer;
}

async function down(data: string): Promise<void> {
  const { stderr, exitCode } = await command("down", ["--data", data]);
  assert.equal(exitCode, 0, stderr);
}

function command(name: "up" | "down", args: readonly string[]): Promise<RunResult> {
  return run(join(hack, name), args, { allowFailure: true, timeoutMs: 180_000 });
}

async function page({ destination }: UpAnswer): Promise<string> {
  const [address] = await lookUp(
    destination,
    "hello.hello.svc.cluster.local:80",
    AbortSignal.timeout(60_000),
  );
  return (await fetch(`http://${address}/`)).text();
}

/** Requests a page of a workspace, which is selected by the host name. Returns the status. */
function statusOf(address = "", hostname = ""): Promise<number | undefined> {
  return new Promise((resolve, reject) =>
    request(`http://${address}/`, { headers: { host: hostname } })
      .once("response", (response) => resolve(response.resume().statusCode))
      .once("error", reject)
      .end(),
  );
}

function idOf(data: string): string {
  const instance = readInstance(data);
  assert.ok(instance);
  return instance.id;
}

function programsOf(data: string) {
  const { programs } = instancePaths(data);
  return ["supervisor", "containerd", "coordinator", "agent"].flatMap(
    (name) => readRunning(programs, name) ?? [],
  );
}

function ctr(host: TestHost, ...args: string[]): Promise<RunResult> {
  return run("ctr", ["--address", host.containerd.address, ...args]);
}

async function assertNothingLeft(id: string, data: string): Promise<void> {
  const ours = (text: string): boolean => text.includes(id) || text.startsWith(`${data}/`);
  assert.deepEqual(await findNetworkRemains(id), { namespaces: [], links: [], tables: [], leases: [] });
  assert.deepEqual(
    findProcesses((argv) => argv.some(ours)),
    [],
  );
  assert.deepEqual(listMounts().filter(ours), []);
  assert.equal(existsSync(data), false);
  const places = [
    "/run",
    "/run/netns",
    "/run/containerd/runc",
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/memory",
    "/var/lib",
  ];
  assert.deepEqual(
    places.filter(existsSync).flatMap((dir) => readdirSync(dir).filter(ours)),
    [],
  );
}
