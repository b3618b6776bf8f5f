import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  CloneTargetMode,
  GitAuthMethod,
  type WorkspaceInitializer,
} from "@forage/proto/content-service-api/initializer";
import { ContentSource, ContentStage } from "@forage/proto/forage/workspaces/v1/workspaces";
import { refuseHostAddresses } from "../src/workspaces/initialize/reachable.ts";
import { git, initialize, run, settled, setUp } from "./initializer-scene.ts";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost, whyNoWorkspaces } from "./workspace-host.ts";

const options = { skip: whyNoWorkspaces ?? false, timeout: 60_000 };
const PASSWORD = "p4ss/w0rd:%é";

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

test("clones the whole history on request", options, async (t) => {
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

test("creates a missing remote branch from the default branch, and reports that", options, async (t) => {
  const scene = await setUp(t);
  const change = { targetMode: CloneTargetMode.REMOTE_BRANCH, cloneTaget: "new/branch" };
  const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git"), ...change }));
  assert.equal(run(join(content, "app"), "rev-parse", "--abbrev-ref", "HEAD"), "new/branch");
  assert.match(scene.host.store.reports.get("a")?.message ?? "", /no branch new\/branch/);
});

test("creates a local branch without an upstream", options, async (t) => {
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

test("removes credentials from a URL", options, async (t) => {
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

test("fails at once with a wrong password, without showing it", options, async (t) => {
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

test("retries while the server fails", options, async (t) => {
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
  test(`rejects ${what}`, options, async (t) => {
    const host = await WorkspaceHost.setUp(t);
    host.store.order(anOrder("a", { initializer }));
    await host.start();
    const { stage, message } = await settled(host);
    assert.equal(stage, ContentStage.FAILED);
    assert.match(message, reason);
  });
}

test("reaches no address of the host, neither directly nor by redirect", options, async (t) => {
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

/**
 * Returns processes other than this one that have one of the texts in their arguments, environment or world-readable
 * files.
 */
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
