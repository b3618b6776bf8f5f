import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { StopWorkspacePolicy, WorkspaceConditionBool, WorkspacePhase } from "@forage/proto/core";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { freeAddresses, type System, startSystem, waitForReady } from "../system/system.ts";
import { WorkspaceCalls } from "../system/workspaces.ts";

const limit = { timeout: 120_000 };

describe("workspaces on a real host", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let calls: WorkspaceCalls;
  let ingress = "";
  let ssh = "";

  before(async () => {
    host = await startTestHost();
    [ingress = "", ssh = ""] = await freeAddresses(2);
    system = await startSystem(host, {
      agent: { workspaces: { enabled: true } },
      coordinator: {
        workspaces: {
          enabled: true,
          host: "example.test",
          ingress: { listen: ingress },
          ssh: { listen: ssh },
          classes: [{ id: "small", cpu: "10m", memory: "32Mi" }],
          command: [
            "sh",
            "-c",
            'trap "test -e .ignore-term || exit 0" TERM; while :; do sleep 1000 & wait $!; done',
          ],
        },
      },
    });
    calls = new WorkspaceCalls(system);
  }, limit);
  after(async () => {
    calls?.close();
    await host?.close();
  }, limit);

  test("content survives the stop, and is there in the next instance", limit, async () => {
    const metadata = { metaId: "kept" };
    await calls.start("kept-1", { metadata });
    await calls.reaches("kept-1", WorkspacePhase.RUNNING);
    const identity = await inside("kept-1", "id -u; hostname; pwd; mkdir project; echo hello > project/file");
    assert.equal(identity, "33333\nkept\n/workspace\n");
    await calls.stop("kept-1");
    const stopped = await calls.reaches("kept-1", WorkspacePhase.STOPPED);
    assert.equal(stopped.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE);
    assert.equal(stopped.conditions?.failed, "");

    await calls.start("kept-2", { metadata });
    await calls.reaches("kept-2", WorkspacePhase.RUNNING);
    assert.equal(await inside("kept-2", "cat project/file"), "hello\n");
    await calls.stop("kept-2");
    await calls.reaches("kept-2", WorkspacePhase.STOPPED);
  });

  test("agent and coordinator that are killed while a workspace stops save its content", limit, async () => {
    const metadata = { metaId: "killed" };
    await calls.start("killed-1", { metadata });
    await calls.reaches("killed-1", WorkspacePhase.RUNNING);
    await inside("killed-1", "echo survives > file");
    await calls.stop("killed-1");
    await system.agent.kill();
    await system.coordinator.kill();
    system.coordinator.start();
    await waitForReady(system.http, system.coordinator);
    system.agent.start();
    await calls.reaches("killed-1", WorkspacePhase.STOPPED);
    await calls.start("killed-2", { metadata });
    await calls.reaches("killed-2", WorkspacePhase.RUNNING);
    assert.equal(await inside("killed-2", "cat file"), "survives\n");
  });

  test(
    "an immediate stop gives the container one second, and saves the content all the same",
    limit,
    async () => {
      await calls.start("hasty", {});
      await calls.reaches("hasty", WorkspacePhase.RUNNING);
      await inside("hasty", "echo hasty > file; touch .ignore-term");
      await calls.stop("hasty", StopWorkspacePolicy.IMMEDIATELY);
      const { stoppedByRequest, finalBackupComplete, failed } =
        (await calls.reaches("hasty", WorkspacePhase.STOPPED, 20_000)).conditions ?? {};
      assert.deepEqual([stoppedByRequest, finalBackupComplete, failed], [1, 1, ""]);
    },
  );

  test("a workspace is reached by the URL of a port and by SSH", limit, async () => {
    const { ownerToken } = await calls.start("seen", { metadata: { metaId: "seen" } });
    await calls.reaches("seen", WorkspacePhase.RUNNING);
    await inside("seen", "echo served > index.html; httpd -p 8080 -h /workspace");
    const headers = { "x-gitpod-owner-token": ownerToken };
    assert.deepEqual(await visit("8080-seen.ws.example.test", headers), [200, "served\n"]);
    assert.deepEqual((await visit("8080-seen.ws.example.test", {}))[0], 401);
    const output = await overSsh(`seen#${ownerToken}`, "echo written by ssh > file; id -u; cat file");
    assert.equal(output, "33333\nwritten by ssh\n");
    await calls.stop("seen");
    await calls.reaches("seen", WorkspacePhase.STOPPED);
  });

  async function visit(name: string, headers: Record<string, string>): Promise<[number | undefined, string]> {
    const sent = request(`http://${ingress}/index.html`, { headers: { ...headers, host: name } }).end();
    return new Promise((resolve, reject) => {
      sent.once("error", reject);
      sent.once("response", (response) =>
        text(response).then((body) => resolve([response.statusCode, body]), reject),
      );
    });
  }

  function overSsh(user: string, command: string): Promise<string> {
    const [address = "", port = ""] = ssh.split(":");
    const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes"];
    const args = ["-F", "/dev/null", "-T", "-p", port, "-l", user, ...options.flatMap((it) => ["-o", it])];
    return new Promise((resolve, reject) => {
      execFile("ssh", [...args, address, command], (error, stdout) =>
        error ? reject(error) : resolve(stdout),
      );
    });
  }

  async function inside(id: string, script: string): Promise<string> {
    const { stdout, stderr, exitCode } = await system.forage([
      "exec",
      "-n",
      "workspaces",
      `ws-${id}`,
      "--",
      "sh",
      "-c",
      script,
    ]);
    assert.equal(exitCode, 0, stderr);
    return stdout;
  }
});
