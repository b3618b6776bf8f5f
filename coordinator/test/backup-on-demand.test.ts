import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  CreateApiTokenRequest,
  OperatorServiceService,
  PutObjectRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { Client, status } from "@grpc/grpc-js";
import { callsOf } from "./support/calls.ts";
import { CoordinatorProcess, runTask } from "./support/coordinator-process.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";

const SECRET = { namespace: "shop", kind: "secret", name: "db" };

test("starts another machine from a backup made while the coordinator served, and nodes connect there", async (t) => {
  const root = tempDir(t);
  const first = await CoordinatorProcess.start(t, join(root, "first"));
  const agent = await HollowAgent.start(first);
  const spec = { $case: "secret", value: { data: { password: Buffer.from("hunter2") } } } as const;
  await first
    .operator()
    .putObject(PutObjectRequest.fromPartial({ namespace: "shop", object: { ...SECRET, spec } }));
  await first.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await until("both pods are assigned", () => agent.assignments.size === 2);
  const { backup } = await first.operator().createBackup({});
  const content = await download(first, backup?.name ?? "");
  assert.equal(content.length, Number(backup?.sizeBytes));
  const assigned = [...agent.assignments.keys()].sort();
  const pods = [...agent.assignments.values()].map((pod) => agent.running(pod));
  await first.kill();

  const second = join(root, "second");
  mkdirSync(join(second, "data"), { recursive: true });
  for (const kept of ["authority", "keys"])
    cpSync(join(first.dataDir, kept), join(second, "data", kept), { recursive: true });
  writeFileSync(join(second, "copied.backup"), content, { mode: 0o600 });
  cpSync(join(root, "first", "admin-token"), join(second, "admin-token"));
  const restored = await runTask(t, second, ["restore", join(second, "copied.backup")]);
  assert.equal(restored.code, 0, restored.stderr);
  const other = await CoordinatorProcess.start(t, second);
  assert.equal(other.caPem, first.caPem);
  const seen = agent.received;
  assert.ok(seen);
  const back = new HollowAgent(other, "n1", agent.pair, { pods, seen });
  await until("the node has its pods again", () => back.assignments.size === 2);
  assert.deepEqual([...back.assignments.keys()].sort(), assigned);
  const { object } = await other.operator().revealObject(SECRET);
  assert.ok(object?.spec?.$case === "secret");
  assert.equal(Buffer.from(object.spec.value.data.password ?? "").toString(), "hunter2");
});

test("allows on-demand backups to administrators, records them, and keeps them beside scheduled ones", async (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, "data", "backups"), { recursive: true });
  const scheduled = "store-20290102T000000Z.backup";
  writeFileSync(join(dir, "data", "backups", scheduled), "");
  const world = await CoordinatorProcess.start(t, dir, { backups: { enabled: false, keep: 2 } });
  const operator = world.operator();
  const { token } = await operator.createApiToken(CreateApiTokenRequest.fromPartial({ role: "editor" }));
  const client = new Client(world.address, channelCredentials({ caPem: world.caPem }));
  t.after(() => client.close());
  const editor = callsOf(OperatorServiceService, client, bearerMetadata(token));
  const denied = { code: status.PERMISSION_DENIED };
  await assert.rejects(editor.createBackup({}), denied);
  await assert.rejects(editor.listBackups({}), denied);
  await assert.rejects(editor.getBackup({ name: scheduled }).toArray(), denied);
  for (const name of ["../admin-token", "demand-20290102T000000000Z.backup", ""])
    await assert.rejects(operator.getBackup({ name }).toArray(), { code: status.NOT_FOUND });

  const made: string[] = [];
  for (let count = 0; count < 3; count++) made.push((await operator.createBackup({})).backup?.name ?? "");
  const kept = [scheduled, ...made.slice(1)];
  assert.deepEqual(readdirSync(join(dir, "data", "backups")).sort(), [...kept].sort());
  const { backups } = await operator.listBackups({});
  assert.deepEqual(new Set(backups.map(({ name }) => name)), new Set(kept));
  assert.deepEqual(
    await download(world, kept[1] ?? ""),
    readFileSync(join(dir, "data/backups", kept[1] ?? "")),
  );
  const { lines } = await operator.listAudit({ after: 0n, limit: 0, newest: false });
  const entries = lines.map((line) => JSON.parse(line));
  const of = (method: string) =>
    entries.filter((entry) => entry.method?.endsWith(`/${method}`)).map(({ result }) => result);
  assert.deepEqual(of("CreateBackup"), ["PERMISSION_DENIED", "OK", "OK", "OK"]);
  assert.ok(of("GetBackup").includes("OK"));
});

async function download(world: CoordinatorProcess, name: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const { frame } of world.operator().getBackup({ name }))
    if (frame?.$case === "data") chunks.push(frame.value);
  return Buffer.concat(chunks);
}

function tempDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-backup-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
