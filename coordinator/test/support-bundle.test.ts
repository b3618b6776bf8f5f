import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { AuditFields } from "@forage/common/audit-chain";
import { RecentLines } from "@forage/common/recent-lines";
import type { SupportFile } from "@forage/proto/forage/agent/v1/agent";
import { PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import type { AuditLog } from "../src/audit/audit-log.ts";
import { MemoryContentStore } from "../src/workspaces/content/memory-content-store.ts";
import { WORKSPACES_SCHEMA } from "../src/workspaces/settings.ts";
import { type FollowerAnswer, startFakeFollower } from "./support/fake-follower.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";
import { aStart } from "./support/workspaces/workspace-world.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };

/** One secret for each place that may contain secrets. */
const CANARY = {
  secret: "canary-in-a-secret",
  secretLine: "canary-in-a-line-of-a-secret",
  configMap: "canary-in-a-config-map",
  registry: "canary-of-a-registry",
  environment: "canary-in-the-environment",
  argument: "canary-in-an-argument",
  command: "canary-in-a-command",
  annotation: "canary-in-an-annotation",
  header: "canary-in-a-header",
  probePath: "canary-in-a-path",
  logUrl: "canary-in-a-url",
  logToken: "canary-in-a-token",
  workspaceVariable: "canary-in-a-workspace-variable",
  workspacePassword: "canary-of-a-git-server",
  workspaceDownload: "canary-in-a-download",
  workspaceAnnotation: "canary-in-a-workspace-annotation",
};

test("contains what an engineer needs, and no secret", LIMIT, async (t) => {
  const { world, agent, recentLog } = await setUp(t);
  await plantCanaries(world);
  recentLog.add(`{"msg":"pulled","url":"https://robot:${CANARY.logUrl}@registry.example/v2/"}\n`);
  recentLog.add(`{"msg":"called","headers":{"authorization":"Bearer ${CANARY.logToken}"}}\n`);
  recentLog.add(`{"msg":"printed ${CANARY.secret}, ${base64(CANARY.registry)} and ${CANARY.environment}"}\n`);
  const { ownerToken } = await world.workspaces().startWorkspace(workspaceWithCanaries());
  const ofWorkspace = `${CANARY.workspaceVariable}, ${CANARY.workspacePassword} and ${ownerToken}`;
  recentLog.add(`{"msg":"cloned with ${ofWorkspace}"}\n`);
  const line = `{"msg":"got ${CANARY.workspacePassword} from https://files.example/?sig=${CANARY.workspaceDownload}"}\n`;
  const sent: FollowerAnswer = {
    parts: [
      ["about.json", "{}\n"],
      ["log.jsonl", line],
      ["log.jsonl", line, `can't read ${CANARY.secret}`],
    ],
  };
  await startFakeFollower(t, world, "c2", sent);
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [withCanaries("web")]));
  await watchToEnd(world, rolloutId);
  // Events are stored slightly later.
  await until("the event is stored", async () => {
    const request = { namespace: "shop", filter: undefined, after: 0n, limit: 0 };
    const { events } = await world.operator().listEvents(request);
    return events.some(({ reason }) => reason === "Scheduled");
  });

  const reading = read(world);
  await answer(agent, [
    { path: "log.jsonl", content: `{"msg":"ran with ${base64(`x${CANARY.secretLine}`)}"}\n`, problem: "" },
    { path: "checks.json", content: "[]\n", problem: `can't read ${CANARY.secret}` },
  ]);
  const files = await reading;

  for (const [path, { content, problem }] of files) {
    for (const canary of [...Object.values(CANARY), ownerToken]) {
      for (const form of [canary, base64(canary).slice(0, -4), base64(`x${canary}`).slice(4, -4)])
        assert.ok(!`${content}${problem}`.includes(form), `${path} holds ${canary}: ${content}`);
    }
  }
  assert.match(textOf(files, "coordinator/log.jsonl"), /"msg":"printed \[left out\], \[left out\]/);
  assert.match(textOf(files, "coordinator/metrics.txt"), /^# HELP forage_/m);
  assert.match(textOf(files, "coordinator/config.json"), /"dataDir": "\/nonexistent"/);
  assert.match(textOf(files, "nodes.jsonl"), /"name":"n1"/);
  assert.match(textOf(files, "pods.jsonl"), /"image":"registry\.example\/team\/app:v1"|"name":"web-/);
  assert.match(textOf(files, "resources.jsonl"), /"name":"DB_PASSWORD","value":"\[left out\]"/);
  assert.match(textOf(files, "objects.jsonl"), /"name":"db".*"sizes":/);
  assert.match(textOf(files, "events.jsonl"), /"reason":"Scheduled"/);
  assert.match(textOf(files, "nodes/n1/log.jsonl"), /"msg":"ran with /);
  assert.match(files.get("nodes/n1/checks.json")?.problem ?? "", /^can't read \[left out\]$/);
  const workspaces = textOf(files, "workspaces.jsonl");
  assert.match(workspaces, /"id":"instance-1".*"phase":"PENDING".*"metaId":"meta-1"/);
  assert.equal(textOf(files, "coordinators/c2/log.jsonl").split("\n").length, 3, "both pieces");
  assert.equal(files.get("coordinators/c2/log.jsonl")?.problem, "can't read [left out]");
  assert.match(textOf(files, "coordinators.jsonl"), /"name":"c2"/);
  for (const [path, { content }] of files)
    if (path.endsWith(".jsonl")) for (const line of content.split("\n").slice(0, -1)) JSON.parse(line);
});

test("ends the files of a coordinator that fails or sends too much with the reason", LIMIT, async (t) => {
  const { world, agent } = await setUp(t);
  agent.close();
  const about = ["about.json", "{}\n"] as const;
  const older = { code: status.UNIMPLEMENTED, details: "no such method" };
  await startFakeFollower(t, world, "c2", { parts: [], error: older });
  await startFakeFollower(t, world, "c3", { parts: [about, ["../../etc/passwd", "x"]] });
  await startFakeFollower(t, world, "c3", { parts: [about, ["log.jsonl", "x".repeat(13 * 1024 * 1024)]] });
  await startFakeFollower(t, world, "../c4", {
    parts: Array.from({ length: 21 }, (_, at) => [`f${at}`, "x\n"] as const),
  });
  const files = await read(world);
  const found = [...files].filter(([path]) => path.startsWith("coordinators/"));
  const problems = found.flatMap(([path, { problem }]) => (problem === "" ? [] : [`${path}: ${problem}`]));
  const limit = "it sent more than the limit of one coordinator";
  // Directories of the same name are sorted by address.
  assert.deepEqual(problems.toSorted(), [
    "coordinators/c2/coordinator: it sends no files: it leads now, or is of an older version",
    ...[...problems].filter((it) => it.startsWith("coordinators/c3")).toSorted(),
    `coordinators/coordinator/coordinator: ${limit}`,
  ]);
  assert.deepEqual(
    problems.flatMap((it) => /^coordinators\/c3(?:-2)?\/coordinator: (.*)/.exec(it)?.[1] ?? []).toSorted(),
    ["it sent a file with a malformed name", limit],
  );
  assert.ok(files.has("coordinators/c3/about.json") && files.has("coordinators/c3-2/about.json"));
  assert.equal(found.filter(([path]) => /\/f\d+$/.test(path)).length, 20);
});

test("reports a node that does not answer with the reason, and sends the rest", LIMIT, async (t) => {
  const { world, agent } = await setUp(t);
  agent.close();
  await until("the node is away", async () => {
    const { problem } = (await read(world)).get("nodes/n1/agent") ?? { problem: "" };
    return problem === "node n1 is not connected";
  });
  const files = await read(world);
  assert.match(textOf(files, "coordinator/about.json"), /"revision": \d+/);
  assert.equal(files.get("backups.jsonl")?.problem, "this coordinator has no directory for backups");
});

test("reports an agent without support bundles with the reason", LIMIT, async (t) => {
  const { world, agent } = await setUp(t);
  const reading = read(world);
  await answer(agent, [], "there is no such container on this node");
  assert.match(
    (await reading).get("nodes/n1/agent")?.problem ?? "",
    /agents of older versions send no files/,
  );
});

test(
  "requires the role admin for a support bundle, and records the caller in the audit log",
  LIMIT,
  async (t) => {
    const { world, entries } = await setUp(t);
    for (const role of ["viewer", "editor"] as const) {
      const call = world.operator(await world.token(role)).getSupportBundle({ nodes: [] });
      await assert.rejects(collected(call), { code: status.PERMISSION_DENIED });
    }
    await assert.rejects(collected(world.operator().getSupportBundle({ nodes: ["n9"] })), {
      code: status.NOT_FOUND,
      details: /there is no node "n9"/,
    });
    const method = "/forage.operator.v1.OperatorService/GetSupportBundle";
    await until("the calls are recorded", () => {
      const results = entries.filter((entry) => entry.method === method).map(({ result }) => result);
      return results.includes("PERMISSION_DENIED") && results.includes("NOT_FOUND");
    });
  },
);

interface File {
  readonly content: string;
  readonly problem: string;
}

async function setUp(t: TestContext) {
  const recentLog = new RecentLines(100_000);
  const entries: AuditFields[] = [];
  const audit: AuditLog = {
    append: (entry) => void entries.push(entry),
    read: async () => ({ lines: [], newest: 0 }),
    close: async () => {},
  };
  const workspaces = WORKSPACES_SCHEMA.parse({ enabled: true, host: "example.test" });
  const content = new MemoryContentStore({ nowMs: () => Date.now() });
  const world = await startWorld(t, {}, { workspaces }, { recentLog, audit, content });
  const agent = await HollowAgent.start(world, { name: "n1" });
  return { world, agent, recentLog, entries };
}

async function plantCanaries(world: World): Promise<void> {
  const put = (name: string, spec: object) =>
    world.operator().putObject(
      PutObjectRequest.fromPartial({
        namespace: "shop",
        object: { namespace: "shop", name, spec },
      } as object),
    );
  const secret = { password: Buffer.from(CANARY.secret), file: Buffer.from(`a\n  ${CANARY.secretLine}\n`) };
  await put("db", { $case: "secret", value: { data: secret } });
  await put("app", { $case: "configMap", value: { data: { a: Buffer.from(CANARY.configMap) } } });
  const registry = { server: "registry.example", username: "robot", password: CANARY.registry };
  await put("pull", { $case: "registryCredential", value: registry });
}

function workspaceWithCanaries() {
  const config = { authUser: "robot", authPassword: CANARY.workspacePassword };
  const git = { remoteUri: "https://git.example/team/app.git", config };
  const file = {
    url: `https://files.example/?sig=${CANARY.workspaceDownload}`,
    filePath: "a",
    digest: `sha256:${"a".repeat(64)}`,
  };
  const initializers = [
    { spec: { $case: "git" as const, value: git } },
    { spec: { $case: "download" as const, value: { files: [file] } } },
  ];
  return aStart({
    metadata: { owner: "owner-1", metaId: "meta-1", annotations: { note: CANARY.workspaceAnnotation } },
    spec: {
      envvars: [{ name: "DB_PASSWORD", value: CANARY.workspaceVariable }],
      initializer: { spec: { $case: "composite", value: { initializer: initializers } } },
    },
  });
}

function withCanaries(name: string) {
  return aContainerService(name, {
    scaling: { replicas: 1 },
    podConfig: { annotations: { "example.com/note": CANARY.annotation } },
    container: {
      name: "main",
      image: "registry.example/team/app:v1",
      command: ["sh", CANARY.command],
      args: [`--password=${CANARY.argument}`],
      env: [{ name: "DB_PASSWORD", valueSource: { $case: "value", value: CANARY.environment } }],
      readinessProbe: {
        handler: {
          $case: "httpGet",
          value: {
            path: `/${CANARY.probePath}`,
            port: 80,
            httpHeaders: [{ name: "x-key", value: CANARY.header }],
          },
        },
      },
    },
  });
}

async function read(world: World): Promise<Map<string, File>> {
  const files = new Map<string, File>();
  for await (const { path, content, problem } of world.operator().getSupportBundle({ nodes: [] })) {
    const before = files.get(path)?.content ?? "";
    files.set(path, { content: before + Buffer.from(content).toString(), problem });
  }
  return files;
}

/** Answers the coordinator's request like an agent. */
async function answer(agent: HollowAgent, files: readonly SupportFile[], error = ""): Promise<void> {
  await until("the agent is asked", () => agent.sessions.length > 0);
  const session = agent.sessions.shift();
  assert.equal(session?.kind?.$case, "support");
  const stream = agent.client.serve();
  stream.on("error", () => {});
  stream.write({ frame: { $case: "sessionId", value: session?.sessionId ?? "" } });
  for (const value of files) stream.write({ frame: { $case: "supportFile", value } });
  stream.write({ frame: { $case: "end", value: { exitCode: error === "" ? 0 : 1, error } } });
  stream.end();
}

function textOf(files: ReadonlyMap<string, File>, path: string): string {
  const file = files.get(path);
  assert.ok(file, `${path} is missing among ${[...files.keys()]}`);
  return file.content;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
