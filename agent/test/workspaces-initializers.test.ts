import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import {
  CloneTargetMode,
  GitAuthMethod,
  GitInitializer,
  type WorkspaceInitializer,
} from "@forage/proto/content-service-api/initializer";
import {
  type Archive,
  ContentSource,
  ContentStage,
  TransferKind,
  TransferState,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { EgressProxy } from "../src/workspaces/initialize/egress-proxy.ts";
import { refuseHostAddresses } from "../src/workspaces/initialize/reachable.ts";
import { GitServer, type GitServerOptions, makeRepository } from "./git-server.ts";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost, whyNoWorkspaces } from "./workspace-host.ts";

const options = { skip: whyNoWorkspaces ?? false, timeout: 60_000 };
const PASSWORD = "p4ss/w0rd:%é";

/** The repositories of all tests, which only read them. */
const root = mkdtempSync(join(tmpdir(), "forage-git-"));
const commits = whyNoWorkspaces === undefined ? makeRepository(root, "app") : [];
after(() => rmSync(root, { recursive: true, force: true }));

interface Scene {
  readonly host: WorkspaceHost;
  readonly server: GitServer;
  readonly commits: readonly string[];
}

async function setUp(t: TestContext, serverOptions: GitServerOptions = {}): Promise<Scene> {
  const server = new GitServer(root, serverOptions);
  await server.start();
  const host = await WorkspaceHost.setUp(t);
  const proxy = await EgressProxy.open((address) => host.refuse(address));
  host.proxyUrl = proxy.url;
  t.after(async () => {
    server.close();
    await proxy.close();
  });
  await host.start();
  return { host, server, commits };
}

function git(change: Parameters<typeof GitInitializer.fromPartial>[0]): WorkspaceInitializer {
  return {
    spec: { $case: "git", value: GitInitializer.fromPartial({ checkoutLocation: "app", ...change }) },
  };
}

async function settled(host: WorkspaceHost, id = "a") {
  await until("it settles", () => {
    const stage = host.store.reports.get(id)?.stage;
    return stage === ContentStage.READY || stage === ContentStage.FAILED;
  });
  return host.store.reports.get(id) ?? assert.fail();
}

async function initialize({ host }: Scene, initializer: WorkspaceInitializer, id = "a"): Promise<string> {
  host.store.order(anOrder(id, { initializer }));
  const { stage, message } = await settled(host, id);
  assert.equal(stage, ContentStage.READY, message);
  return host.layout.content(id);
}

function run(directory: string, ...args: string[]): string {
  const { stdout } = spawnSync("git", ["-c", "safe.directory=*", "-C", directory, ...args], {
    encoding: "utf8",
  });
  return stdout.trim();
}

test("clones the remote's default branch", options, async (t) => {
  const scene = await setUp(t);
  const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git") }));
  const app = join(content, "app");
  assert.equal(readFileSync(join(app, "file.txt"), "utf8"), "three");
  assert.equal(run(app, "rev-parse", "--abbrev-ref", "HEAD"), "main");
  assert.equal(run(app, "rev-list", "--count", "HEAD"), "1");
  assert.equal(statSync(join(app, "file.txt")).uid, 33_333);
  assert.equal(run(app, "status", "--porcelain"), "");
  assert.deepEqual(JSON.parse(readFileSync(join(content, ".gitpod", "ready"), "utf8")), {
    source: "from-other",
  });
});

test("clones all history on request", options, async (t) => {
  const scene = await setUp(t);
  const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git"), fullClone: true }));
  assert.equal(run(join(content, "app"), "rev-list", "--count", "HEAD"), "3");
});

test("checks out a commit", options, async (t) => {
  const scene = await setUp(t);
  const [cloneTaget = ""] = scene.commits;
  const targetMode = CloneTargetMode.REMOTE_COMMIT;
  const content = await initialize(
    scene,
    git({ remoteUri: scene.server.url("app.git"), targetMode, cloneTaget }),
  );
  assert.equal(run(join(content, "app"), "rev-parse", "HEAD"), cloneTaget);
  assert.equal(readFileSync(join(content, "app", "file.txt"), "utf8"), "one");
});

test("checks out a remote branch that tracks its origin", options, async (t) => {
  const scene = await setUp(t);
  const change = { targetMode: CloneTargetMode.REMOTE_BRANCH, cloneTaget: "feature" };
  const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git"), ...change }));
  const app = join(content, "app");
  assert.equal(run(app, "rev-parse", "--abbrev-ref", "HEAD@{upstream}"), "origin/feature");
  assert.equal(run(app, "log", "-1", "--format=%s"), "feature");
});

test("begins a missing remote branch at the default branch, and says so", options, async (t) => {
  const scene = await setUp(t);
  const change = { targetMode: CloneTargetMode.REMOTE_BRANCH, cloneTaget: "new/branch" };
  const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git"), ...change }));
  assert.equal(run(join(content, "app"), "rev-parse", "--abbrev-ref", "HEAD"), "new/branch");
  assert.match(scene.host.store.reports.get("a")?.message ?? "", /no branch new\/branch/);
});

test("makes a local branch without an upstream", options, async (t) => {
  const scene = await setUp(t);
  const change = { targetMode: CloneTargetMode.LOCAL_BRANCH, cloneTaget: "mine" };
  const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git"), ...change }));
  const app = join(content, "app");
  assert.equal(run(app, "rev-parse", "--abbrev-ref", "HEAD"), "mine");
  assert.equal(run(app, "config", "branch.mine.merge"), "");
});

test("applies custom settings and the upstream remote", options, async (t) => {
  const scene = await setUp(t);
  const remoteUri = scene.server.url("app.git");
  const config = { customConfig: { "user.name": "Ada --local", "core.hooksPath": "/workspace/hooks" } };
  const content = await initialize(
    scene,
    git({ remoteUri, upstreamRemoteUri: "https://example.com/up.git", config }),
  );
  const app = join(content, "app");
  assert.equal(run(app, "config", "user.name"), "Ada --local");
  assert.equal(run(app, "config", "core.hooksPath"), "/workspace/hooks");
  assert.equal(run(app, "remote", "get-url", "upstream"), "https://example.com/up.git");
});

test(
  "keeps a password out of arguments, environments, other processes' sight, files and logs",
  options,
  async (t) => {
    const scene = await setUp(t, { password: `ada:${PASSWORD}` });
    const seen: string[] = [];
    scene.server.onRequest = async () =>
      void seen.push(...processesWith([PASSWORD, encodeURIComponent(PASSWORD)]));
    const config = { authentication: GitAuthMethod.BASIC_AUTH, authUser: "ada", authPassword: PASSWORD };
    const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git"), config }));

    assert.ok(scene.server.requests.length > 2);
    assert.deepEqual(seen, []);
    for (const secret of [PASSWORD, encodeURIComponent(PASSWORD)]) {
      assert.equal(JSON.stringify(scene.host.logged).includes(secret), false);
      assert.equal(
        spawnSync("grep", ["-rlF", "--", secret, scene.host.layout.root, "/tmp/secret"]).stdout.toString(),
        "",
      );
      assert.equal(readFileSync(join(content, "app", ".git", "config"), "utf8").includes(secret), false);
    }
  },
);

test("takes credentials out of a URL", options, async (t) => {
  const scene = await setUp(t, { password: "ada:s3cr3t" });
  const remoteUri = scene.server.url("app.git").replace("//", "//ada:s3cr3t@");
  const content = await initialize(scene, git({ remoteUri }));
  assert.equal(run(join(content, "app"), "remote", "get-url", "origin"), scene.server.url("app.git"));
});

test(
  "fetches a one-time secret once, over attempts and a restart, and then deletes it",
  options,
  async (t) => {
    const scene = await setUp(t, { password: "ada:once" });
    const { server, host } = scene;
    let given = 0;
    server.handlers.set("ots", (response) => {
      given += 1;
      if (given > 1) response.writeHead(404).end();
      else response.end("ada:once");
    });
    server.faults.push(...Array.from({ length: 4 }, () => 503));
    const config = { authentication: GitAuthMethod.BASIC_AUTH_OTS, authOts: server.url("ots") };
    host.store.order(anOrder("a", { initializer: git({ remoteUri: server.url("app.git"), config }) }));
    await until("the first attempt fails", () =>
      host.logged.some(({ event }) => event === "workspace-work-failed"),
    );
    assert.equal(existsSync(host.layout.secrets("a")), true);
    await host.start();
    assert.equal((await settled(host)).stage, ContentStage.READY);
    assert.equal(given, 1);
    assert.equal(existsSync(host.layout.secrets("a")), false);
  },
);

test("fails at once for a wrong password, without showing it", options, async (t) => {
  const scene = await setUp(t, { password: "ada:right" });
  const config = { authentication: GitAuthMethod.BASIC_AUTH, authUser: "ada", authPassword: "wr0ng-one" };
  scene.host.store.order(
    anOrder("a", { initializer: git({ remoteUri: scene.server.url("app.git"), config }) }),
  );
  const { stage, message } = await settled(scene.host);
  assert.equal(stage, ContentStage.FAILED);
  assert.match(message, /Authentication failed/);
  assert.equal(message.includes("wr0ng-one"), false);
});

test("tries again while the server fails", options, async (t) => {
  const scene = await setUp(t);
  scene.server.faults.push(503, 500, 502);
  await initialize(scene, git({ remoteUri: scene.server.url("app.git") }));
  assert.ok(scene.host.logged.filter(({ event }) => event === "workspace-work-failed").length >= 1);
});

const REFUSED: readonly (readonly [string, WorkspaceInitializer, RegExp])[] = [
  ["a local path", git({ remoteUri: "/etc" }), /http or https/],
  ["the file protocol", git({ remoteUri: "file:///etc" }), /http or https/],
  ["a program as remote", git({ remoteUri: "ext::sh -c id" }), /http or https/],
  ["an option as remote", git({ remoteUri: "--upload-pack=id" }), /http or https/],
  ["a location outside", git({ remoteUri: "http://h/x", checkoutLocation: "../x" }), /not a relative path/],
  [
    "a volume snapshot",
    { spec: { $case: "snapshot", value: { snapshot: "x", fromVolumeSnapshot: true } } },
    /volume snapshots/,
  ],
  [
    "an unknown snapshot",
    { spec: { $case: "snapshot", value: { snapshot: "x", fromVolumeSnapshot: false } } },
    /no such snapshot/,
  ],
  [
    "a missing backup",
    { spec: { $case: "backup", value: { checkoutLocation: "", fromVolumeSnapshot: false } } },
    /has none/,
  ],
];

for (const [what, initializer, reason] of REFUSED) {
  test(`refuses ${what}`, options, async (t) => {
    const host = await WorkspaceHost.setUp(t);
    host.store.order(anOrder("a", { initializer }));
    await host.start();
    const { stage, message } = await settled(host);
    assert.equal(stage, ContentStage.FAILED);
    assert.match(message, reason);
  });
}

test("reaches no address of the host, directly or by redirect", options, async (t) => {
  const scene = await setUp(t);
  const { server, host } = scene;
  host.refuse = refuseHostAddresses();
  await host.start();
  host.store.order(anOrder("a", { initializer: git({ remoteUri: server.url("app.git") }) }));
  await until("the refusal is reported", () => host.store.history.some(({ message }) => /403/.test(message)));
  assert.deepEqual(server.requests, []);

  host.store.order(anOrder("b", { initializer: download(server.url("file"), "f", "") }));
  assert.match((await settled(host, "b")).message, /belongs to this host/);
});

function download(url: string, filePath: string, content: string): WorkspaceInitializer {
  const digest = `sha256:${createHash("sha256").update(content).digest("hex")}`;
  return {
    spec: { $case: "download", value: { files: [{ url, filePath, digest }], targetLocation: "data" } },
  };
}

test("downloads files and verifies their digests", options, async (t) => {
  const scene = await setUp(t);
  scene.server.handlers.set("file", (response) => void response.end("hello"));
  scene.server.handlers.set("moved", (response) => void response.writeHead(302, { location: "/file" }).end());
  const content = await initialize(scene, download(scene.server.url("moved"), "deep/-file", "hello"));
  const path = join(content, "data", "deep", "-file");
  assert.equal(readFileSync(path, "utf8"), "hello");
  assert.deepEqual([statSync(path).uid, statSync(path).mode & 0o777], [33_333, 0o644]);
  assert.equal(scene.host.store.reports.get("a")?.source, ContentSource.DOWNLOAD);

  const { store } = scene.host;
  store.order(anOrder("b", { initializer: download(scene.server.url("file"), "f", "other") }));
  assert.match((await settled(scene.host, "b")).message, /SHA-256/);
});

test("runs the parts of a composite in order", options, async (t) => {
  const scene = await setUp(t);
  scene.server.handlers.set("file", (response) => void response.end("hello"));
  const parts = [
    git({ remoteUri: scene.server.url("app.git") }),
    download(scene.server.url("file"), "f", "hello"),
  ];
  const content = await initialize(scene, { spec: { $case: "composite", value: { initializer: parts } } });
  assert.equal(readFileSync(join(content, "app", "file.txt"), "utf8"), "three");
  assert.equal(readFileSync(join(content, "data", "f"), "utf8"), "hello");
  assert.equal(scene.host.store.reports.get("a")?.source, ContentSource.COMPOSITE);
});

/** A snapshot of a clone with an uncommitted change. */
async function snapshot(scene: Scene, change: (app: string) => void): Promise<Archive> {
  const { host, commits } = scene;
  const mode = { targetMode: CloneTargetMode.REMOTE_COMMIT, cloneTaget: commits[0] ?? "" };
  const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git"), ...mode }), "base");
  change(join(content, "app"));
  host.store.change("base", { transfers: [{ id: "s", kind: TransferKind.SNAPSHOT, object: "o/s" }] });
  await until("it is stored", () => host.store.transfer("base", "s")?.state === TransferState.DONE);
  return host.store.transfer("base", "s")?.archive ?? assert.fail();
}

test("starts from a snapshot", options, async (t) => {
  const scene = await setUp(t);
  const archive = await snapshot(scene, (app) => writeFileSync(join(app, "untracked"), "x"));
  const initializer = {
    spec: { $case: "snapshot", value: { snapshot: "o/s@store", fromVolumeSnapshot: false } },
  } as const;
  scene.host.store.order(anOrder("a", { initializer, archives: { "o/s@store": archive } }));
  assert.equal((await settled(scene.host)).source, ContentSource.SNAPSHOT);
  assert.equal(readFileSync(join(scene.host.layout.content("a"), "app", "untracked"), "utf8"), "x");
});

function prebuild(scene: Scene): WorkspaceInitializer {
  const value = GitInitializer.fromPartial({
    ...{ remoteUri: scene.server.url("app.git"), checkoutLocation: "app" },
    ...{ targetMode: CloneTargetMode.REMOTE_BRANCH, cloneTaget: "feature" },
  });
  const snapshotOf = { snapshot: "o/s@store", fromVolumeSnapshot: false };
  return { spec: { $case: "prebuild", value: { prebuild: snapshotOf, git: [value] } } };
}

test(
  "brings a prebuild up to date and keeps its changes, without running its programs",
  options,
  async (t) => {
    const scene = await setUp(t);
    const trap = join(tmpdir(), `forage-trap-${process.pid}`);
    const archive = await snapshot(scene, (app) => {
      writeFileSync(join(app, "built"), "artifact");
      for (const key of ["core.fsmonitor", "filter.x.smudge", "filter.x.clean", "core.alternateRefsCommand"])
        run(app, "config", key, `touch /mnt/trapped ${trap}; cat`);
      writeFileSync(join(app, ".git", "info", "attributes"), "* filter=x\n");
      writeFileSync(join(app, ".git", "hooks", "post-checkout"), "#!/bin/sh\ntouch /mnt/trapped\n", {
        mode: 0o755,
      });
    });
    scene.host.store.order(
      anOrder("a", { initializer: prebuild(scene), archives: { "o/s@store": archive } }),
    );
    const { source, message } = await settled(scene.host);
    const content = scene.host.layout.content("a");
    const app = join(content, "app");
    assert.equal(source, ContentSource.PREBUILD, message);
    assert.equal(readFileSync(join(app, "built"), "utf8"), "artifact");
    assert.equal(run(app, "log", "-1", "--format=%s"), "feature");
    assert.ok(readFileSync(join(app, ".git", "config"), "utf8").includes("fsmonitor"));
    assert.deepEqual(readdirSync(content).sort(), [".gitpod", "app"]);
  },
);

test("clones when the prebuild can't be used", options, async (t) => {
  const scene = await setUp(t);
  scene.host.store.order(anOrder("a", { initializer: prebuild(scene) }));
  const { source, message, stage } = await settled(scene.host);
  assert.equal(stage, ContentStage.READY, message);
  assert.equal(source, ContentSource.GIT);
  assert.match(message, /prebuild is not used/);
});

/** Processes but this one whose arguments or environment hold one of the texts, or whose files anyone can read that do. */
function processesWith(texts: readonly string[]): string[] {
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .flatMap((pid) => ["cmdline", "environ"].map((file) => `/proc/${pid}/${file}`))
    .filter((path) => {
      try {
        const bytes = readFileSync(path);
        return texts.some((text) => bytes.includes(text));
      } catch {
        return false;
      }
    });
}
