import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
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
import { addSubmodules, GitServer, makeRepository } from "../../hack/lib/git-server.ts";
import { git, initialize, root, run, type Scene, settled, setUp } from "./initializer-scene.ts";
import { until } from "./until.ts";
import { anOrder, whyNoWorkspaces } from "./workspace-host.ts";

const options = { skip: whyNoWorkspaces ?? false, timeout: 60_000 };

/** Returns a snapshot of a clone with an uncommitted change. */
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

test("clones if the prebuild can't be used", options, async (t) => {
  const scene = await setUp(t);
  scene.host.store.order(anOrder("a", { initializer: prebuild(scene) }));
  const { source, message, stage } = await settled(scene.host);
  assert.equal(stage, ContentStage.READY, message);
  assert.equal(source, ContentSource.GIT);
  assert.match(message, /prebuild is not used/);
});

test(
  "reports the Git status with the final backup, without running the content's programs",
  options,
  async (t) => {
    const scene = await setUp(t);
    const { host } = scene;
    const content = await initialize(scene, git({ remoteUri: scene.server.url("app.git") }));
    const app = join(content, "app");
    run(app, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--allow-empty", "-m", "local work");
    writeFileSync(join(app, "file.txt"), "changed");
    writeFileSync(join(app, "un tracked"), "x", { mode: 0o600 });
    run(app, "config", "core.fsmonitor", "touch /mnt/trapped");
    host.store.change("a", {
      readGitStatus: true,
      transfers: [{ id: "f", kind: TransferKind.FINAL_BACKUP, object: "o/f" }],
    });
    await until("it is stored", () => host.store.transfer("a", "f")?.state === TransferState.DONE);
    const { gitStatus, usedBytes = 0n } = host.store.reports.get("a") ?? {};
    assert.equal(gitStatus?.branch, "main");
    assert.deepEqual(gitStatus?.uncommitedFiles, ["file.txt"]);
    assert.deepEqual(gitStatus?.untrackedFiles, ["un tracked"]);
    assert.match(gitStatus?.unpushedCommits.join() ?? "", /^[0-9a-f]+: local work$/);
    assert.equal(gitStatus?.latestCommit, run(app, "rev-parse", "HEAD"));
    assert.ok(usedBytes > 0n);
    assert.ok(!existsSync(join(content, "trapped")));
  },
);

test("fetches submodules with the credentials, and only reports those that fail", options, async (t) => {
  const scene = await setUp(t, { password: "ada:s3cr3t" });
  const { server, commits } = scene;
  const other = new GitServer(root);
  await other.start("127.0.0.2");
  t.after(() => other.close());
  const name = `super-${process.pid}`;
  makeRepository(root, name);
  const urls = { "a-good": "../app.git", "b-file": "file:///etc", "c-refused": other.url("app.git") };
  addSubmodules(root, name, commits[2] ?? "", urls);
  scene.host.refuse = (address) => (address === "127.0.0.2" ? "is refused" : undefined);
  const config = { authentication: GitAuthMethod.BASIC_AUTH, authUser: "ada", authPassword: "s3cr3t" };
  const content = await initialize(scene, git({ remoteUri: server.url(`${name}.git`), config }));
  const app = join(content, "app");
  assert.equal(readFileSync(join(app, "a-good", "file.txt"), "utf8"), "three");
  assert.deepEqual(readdirSync(join(app, "b-file")), []);
  assert.match(scene.host.store.reports.get("a")?.message ?? "", /submodules could not be fetched/);
  assert.deepEqual(other.requests, []);
});
