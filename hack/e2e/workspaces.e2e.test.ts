import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type ClientRequest, request } from "node:http";
import { request as requestTls } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { CertificateAuthority } from "@forage/identity/ca";
import { StopWorkspacePolicy, WorkspaceConditionBool, WorkspacePhase } from "@forage/proto/core";
import { parse, stringify } from "yaml";
import { ensureEnvoy } from "../lib/envoy.ts";
import { startS3Server } from "../lib/s3-server.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { freeAddresses, type System, startSystem, waitForReady } from "../system/system.ts";
import { WorkspaceCalls } from "../system/workspaces.ts";

const LIMIT = { timeout: 120_000 };
/** Accepts the upgrade of one connection, and sends back what it receives. */
const ECHO_SOCKET =
  'printf "HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n"; while read -r line; do case "$line" in ??*) ;; *) break ;; esac; done; exec cat';
/** Names, modes, owners and links of files, and the content of the large one. */
const DIGEST = "stat -c '%n %a %u %g %s %h' large hard; sha256sum large hard";

describe("workspaces on a real host", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let calls: WorkspaceCalls;
  let ingress = "";
  let ssh = "";
  let gateway = "";
  let gatewayTls = "";

  before(async () => {
    host = await startTestHost();
    const envoy = await ensureEnvoy();
    [ingress = "", ssh = "", gateway = "", gatewayTls = ""] = await freeAddresses(4);
    const [httpPort, httpsPort] = [gateway, gatewayTls].map((it) => Number(it.split(":")[1]));
    system = await startSystem(host, {
      agent: {
        workspaces: { enabled: true },
        gateway: { envoy, address: "127.0.0.1", httpPort, httpsPort },
      },
      coordinator: {
        workspaces: {
          enabled: true,
          host: "example.test",
          ingress: { listen: ingress, gatewayAddresses: ["127.0.0.1"] },
          ssh: { listen: ssh },
          classes: [{ id: "small", cpu: "10m", memory: "32Mi" }],
          command: [
            "sh",
            "-c",
            'echo started; trap "test -e .ignore-term || exit 0" TERM; while :; do sleep 1000 & wait $!; done',
          ],
        },
      },
    });
    calls = new WorkspaceCalls(system);
  }, LIMIT);
  after(async () => {
    calls?.close();
    await host?.close();
  }, LIMIT);

  test("content survives the stop, and is in the next instance", LIMIT, async () => {
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

  test("agent and coordinator that are killed while a workspace stops save its content", LIMIT, async () => {
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

  test("an immediate stop gives the container one second, and still saves the content", LIMIT, async () => {
    await calls.start("hasty", {});
    await calls.reaches("hasty", WorkspacePhase.RUNNING);
    await inside("hasty", "echo hasty > file; touch .ignore-term");
    await calls.stop("hasty", StopWorkspacePolicy.IMMEDIATELY);
    const { stoppedByRequest, finalBackupComplete, failed } =
      (await calls.reaches("hasty", WorkspacePhase.STOPPED, 20_000)).conditions ?? {};
    assert.deepEqual([stoppedByRequest, finalBackupComplete, failed], [1, 1, ""]);
  });

  test("the command line starts, lists, opens, reads, snapshots and stops workspaces", LIMIT, async () => {
    const forage = async (...args: string[]): Promise<string> => {
      const { stdout, stderr, exitCode } = await system.forageInProcess(["workspace", ...args]);
      assert.equal(exitCode, 0, stderr);
      return stdout;
    };
    await forage("start", "cli-1", "--workspace", "cli", "--image", host.image);
    await calls.reaches("cli-1", WorkspacePhase.RUNNING);
    assert.match(await forage("ls", "--workspace", "cli"), /^cli-1 +cli +forage +Running +small +n1 /m);
    assert.match(await forage("open", "cli"), /cli-1\.ws\.example\.test\//);
    await waitFor(async () => (await forage("logs", "cli")) === "started\n", {
      ...{ what: "the log of the workspace is there", limitMs: 60_000 },
    });
    await inside("cli-1", "echo taken > file");
    const url = (await forage("snapshot", "cli")).trim();
    await forage("start", "cli-2", "--image", host.image, "--snapshot", url);
    await calls.reaches("cli-2", WorkspacePhase.RUNNING);
    const shell = await system.forage(["workspace", "ssh", "cli-2", "--", "cat", "file"]);
    assert.deepEqual([shell.exitCode, shell.stdout], [0, "taken\n"], shell.stderr);
    for (const id of ["cli-1", "cli-2"]) {
      assert.equal(await forage("stop", id), `workspace ${id} is being stopped\n`);
      await calls.reaches(id, WorkspacePhase.STOPPED);
    }
    assert.match(await forage("ls", "--workspace", "cli"), /^cli-1 +cli +forage +Stopped /m);
  });

  test("a workspace is reached by the URL of a port and by SSH", LIMIT, async () => {
    const { ownerToken } = await calls.start("seen", { metadata: { metaId: "seen" } });
    await calls.reaches("seen", WorkspacePhase.RUNNING);
    await inside("seen", "echo served > index.html; httpd -p 8080 -h /workspace");
    const headers = { "x-gitpod-owner-token": ownerToken };
    assert.deepEqual(await visit("8080-seen.ws.example.test", headers), [200, "served\n"]);
    await routeGateway();
    await serves("8080-seen.ws.example.test", headers, gateway);
    await inside("seen", `nc -ll -p 8081 -e sh -c '${ECHO_SOCKET}' > /dev/null 2>&1 &`);
    await echoes("8081-seen.ws.example.test", headers);
    assert.deepEqual((await visit("8080-seen.ws.example.test", {}))[0], 401);
    const output = await overSsh(`seen#${ownerToken}`, "echo written by ssh > file; id -u; cat file");
    assert.equal(output, "33333\nwritten by ssh\n");
    const local = await mkdtemp(join(tmpdir(), "forage-sftp-"));
    try {
      await writeFile(join(local, "sent"), "sent by sftp\n");
      await overSftp(`seen#${ownerToken}`, ["cd /workspace", `put ${local}/sent`, `get sent ${local}/back`]);
      assert.equal(await readFile(join(local, "back"), "utf8"), "sent by sftp\n");
    } finally {
      await rm(local, { recursive: true, force: true });
    }
    assert.equal(
      await inside("seen", "stat -c '%u %g %a' sent; cat sent"),
      "33333 33333 644\nsent by sftp\n",
    );
    await calls.stop("seen");
    await calls.reaches("seen", WorkspacePhase.STOPPED);
  });

  test("a gateway terminates the TLS of workspaces' URLs, or passes it to the ingress", LIMIT, async () => {
    const { ownerToken } = await calls.start("safe", {});
    await calls.reaches("safe", WorkspacePhase.RUNNING);
    await inside("safe", "echo served > index.html; httpd -p 8080 -h /workspace");
    await inside("safe", `nc -ll -p 8081 -e sh -c '${ECHO_SOCKET}' > /dev/null 2>&1 &`);
    const headers = { "x-gitpod-owner-token": ownerToken };
    const [ofGateway, ofIngress] = [await certificate("gateway"), await certificate("ingress")];
    const files = ["--from-file", `tls.crt=${ofGateway.crt}`, "--from-file", `tls.key=${ofGateway.key}`];
    const { exitCode, stderr } = await system.forage(["secret", "set", "tls", "-n", "workspaces", ...files]);
    assert.equal(exitCode, 0, stderr);
    await routeGateway({ tls: { certificateRef: "tls" } });
    await serves("8080-safe.ws.example.test", headers, gatewayTls, ofGateway.ca);
    await echoes("8081-safe.ws.example.test", headers, ofGateway.ca);

    const keyFiles = { certificateFile: ofIngress.crt, keyFile: ofIngress.key };
    await restartWith({ ingress: { listen: ingress, gatewayAddresses: ["127.0.0.1"], ...keyFiles } });
    await routeGateway({ tls: { mode: "Passthrough" } });
    // The gateway has no key for this certificate, so only the ingress can present it.
    await serves("8080-safe.ws.example.test", headers, gatewayTls, ofIngress.ca);
    await echoes("8081-safe.ws.example.test", headers, ofIngress.ca);
  });

  test("content is saved to an S3 server, and restored from there", LIMIT, async () => {
    const s3 = await startS3Server();
    try {
      const { endpoint, bucket, credentials } = s3;
      const credentialsFile = join(host.dir, "s3.json");
      await writeFile(credentialsFile, JSON.stringify(credentials), { mode: 0o600 });
      await restartWith({ content: { s3: { endpoint, bucket, credentialsFile } } });
      const metadata = { metaId: "remote" };
      await calls.start("remote-1", { metadata });
      await calls.reaches("remote-1", WorkspacePhase.RUNNING);
      await inside("remote-1", "head -c 8388608 /dev/urandom > large; ln large hard; chmod 750 large");
      const digest = await inside("remote-1", DIGEST);
      await calls.stop("remote-1");
      const { conditions } = await calls.reaches("remote-1", WorkspacePhase.STOPPED);
      assert.deepEqual([conditions?.finalBackupComplete, conditions?.failed], [1, ""]);
      const stored = (await s3.list()).filter((key) => key.includes("remote-1"));
      assert.match(stored.join("\n"), /^data\/\S+\nindex\/\S+$/);

      await calls.start("remote-2", { metadata });
      await calls.reaches("remote-2", WorkspacePhase.RUNNING);
      assert.equal(await inside("remote-2", DIGEST), digest);
    } finally {
      await s3.close();
    }
  });

  /** Restarts the coordinator with changed settings of workspaces. */
  async function restartWith(change: object): Promise<void> {
    await system.coordinator.stop();
    const config = join(host.dir, "coordinator.yaml");
    const settings = parse(await readFile(config, "utf8"));
    Object.assign(settings.workspaces, change);
    await writeFile(config, stringify(settings));
    system.coordinator.start();
    await waitForReady(system.http, system.coordinator);
  }

  /** Writes a certificate for the workspaces' URLs, issued by its own authority. */
  async function certificate(name: string): Promise<{ crt: string; key: string; ca: string }> {
    const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
    const issued = await authority.issueServer({ dnsNames: ["*.ws.example.test"], ipAddresses: [] });
    const [crt, key] = [join(host.dir, `${name}.crt`), join(host.dir, `${name}.key`)];
    await writeFile(crt, issued.chainPem);
    await writeFile(key, issued.keyPem, { mode: 0o600 });
    return { crt, key, ca: authority.certPem };
  }

  /**
   * Waits until the page of the workspace is served with its owner token, and refused without it. Each of Envoy's
   * threads applies a new configuration separately, so the next connection may meet a thread with the former one.
   */
  function serves(name: string, headers: Record<string, string>, at: string, ca?: string): Promise<void> {
    const visits = async (): Promise<unknown> => [
      await visit(name, headers, at, ca),
      (await visit(name, {}, at, ca))[0],
    ];
    return eventually(`${name} is served at ${at}`, visits, [[200, "served\n"], 401]);
  }

  function echoes(name: string, headers: Record<string, string>, ca?: string): Promise<void> {
    return eventually(`${name} echoes`, () => echoed(name, headers, ca), "over the gateway");
  }

  async function eventually(what: string, ask: () => Promise<unknown>, expected: unknown): Promise<void> {
    let last: unknown;
    const isExpected = async (): Promise<boolean> => {
      last = await ask().catch(String);
      return isDeepStrictEqual(last, expected);
    };
    const explain = (): string => JSON.stringify(last);
    await waitFor(isExpected, { what, limitMs: 60_000, everyMs: 100, explain });
  }

  async function routeGateway(change: object = {}): Promise<void> {
    const labelled = await system.forage(["node", "label", "n1", "forage.dev/gateway=default"]);
    assert.equal(labelled.exitCode, 0, labelled.stderr);
    const route = { hostnames: ["*.ws.example.test"], targetService: "workspace-ingress", ...change };
    const bundle = {
      namespace: "workspaces",
      labels: { app: "ingress" },
      resources: [{ name: "ws", route }],
    };
    const { exitCode, stderr } = await system.forage(["apply", "-f", "-"], JSON.stringify(bundle));
    assert.equal(exitCode, 0, stderr);
  }

  /** Opens a WebSocket through the gateway, and returns what the workspace sends back. */
  function echoed(name: string, headers: Record<string, string>, ca?: string): Promise<string> {
    const upgrade = { connection: "Upgrade", upgrade: "websocket", host: name };
    const sent = ask("/", { ...headers, ...upgrade }, ca === undefined ? gateway : gatewayTls, ca);
    return new Promise((resolve, reject) => {
      sent.once("error", reject);
      sent.once("response", ({ statusCode }) => reject(new Error(`answer ${statusCode}`)));
      sent.once("upgrade", (_response, socket, head) => {
        let text = head.toString();
        socket.on("data", (data: Buffer) => {
          text += data.toString();
          if (text.length >= "over the gateway".length) resolve(text);
          if (text.length >= "over the gateway".length) socket.destroy();
        });
        socket.once("error", reject);
        socket.once("close", () => reject(new Error(`it closed after "${text}"`)));
        socket.write("over the gateway");
      });
    });
  }

  async function visit(
    name: string,
    headers: Record<string, string>,
    at = ingress,
    ca?: string,
  ): Promise<[number | undefined, string]> {
    const sent = ask("/index.html", { ...headers, host: name }, at, ca);
    return new Promise((resolve, reject) => {
      sent.once("error", reject);
      sent.once("response", (response) =>
        text(response).then((body) => resolve([response.statusCode, body]), reject),
      );
    });
  }

  /** Sends a request, over TLS if there is an authority to trust. */
  function ask(
    path: string,
    headers: Record<string, string> & { readonly host: string },
    at: string,
    ca: string | undefined,
  ): ClientRequest {
    if (ca === undefined) return request(`http://${at}${path}`, { headers }).end();
    return requestTls(`https://${at}${path}`, { headers, ca, servername: headers.host, agent: false }).end();
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

  /** Runs sftp commands against the workspace. Its image has no sftp-server. */
  function overSftp(user: string, lines: readonly string[]): Promise<string> {
    const [address = "", port = ""] = ssh.split(":");
    const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes"];
    const all = [...options, `User=${user}`].flatMap((it) => ["-o", it]);
    return new Promise((resolve, reject) => {
      const args = ["-F", "/dev/null", "-b", "-", "-P", port, ...all, address];
      const child = execFile("sftp", args, (error, stdout) => (error ? reject(error) : resolve(stdout)));
      // The client may exit before it has read its input. The test checks its exit code.
      child.stdin?.on("error", () => {});
      child.stdin?.end(`${lines.join("\n")}\n`);
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
