import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext } from "node:test";
import { GitInitializer, type WorkspaceInitializer } from "@forage/proto/content-service-api/initializer";
import { ContentStage } from "@forage/proto/forage/workspaces/v1/workspaces";
import { GitServer, type GitServerOptions, makeRepository } from "../../hack/lib/git-server.ts";
import { EgressProxy } from "../src/workspaces/initialize/egress-proxy.ts";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost, whyNoWorkspaces } from "./workspace-host.ts";

/** The directory of repositories of all tests, which only read them. */
export const root = mkdtempSync(join(tmpdir(), "forage-git-"));
const commits = whyNoWorkspaces === undefined ? makeRepository(root, "app") : [];
after(() => rmSync(root, { recursive: true, force: true }));

export interface Scene {
  readonly host: WorkspaceHost;
  readonly server: GitServer;
  readonly commits: readonly string[];
}

export async function setUp(t: TestContext, serverOptions: GitServerOptions = {}): Promise<Scene> {
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

export function git(change: Parameters<typeof GitInitializer.fromPartial>[0]): WorkspaceInitializer {
  return {
    spec: { $case: "git", value: GitInitializer.fromPartial({ checkoutLocation: "app", ...change }) },
  };
}

export async function settled(host: WorkspaceHost, id = "a") {
  await until("it settles", () => {
    const stage = host.store.reports.get(id)?.stage;
    return stage === ContentStage.READY || stage === ContentStage.FAILED;
  });
  return host.store.reports.get(id) ?? assert.fail();
}

export async function initialize(
  { host }: Scene,
  initializer: WorkspaceInitializer,
  id = "a",
): Promise<string> {
  host.store.order(anOrder(id, { initializer }));
  const { stage, message } = await settled(host, id);
  assert.equal(stage, ContentStage.READY, message);
  return host.layout.content(id);
}

export function run(directory: string, ...args: string[]): string {
  const { stdout } = spawnSync("git", ["-c", "safe.directory=*", "-C", directory, ...args], {
    encoding: "utf8",
  });
  return stdout.trim();
}
