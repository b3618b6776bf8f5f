import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, describe, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { bundledProgram } from "../../hack/bundling/bundled-program.ts";
import { packOciArchive } from "../../hack/lib/oci-archive.ts";
import type { Command } from "../src/command/definition.ts";
import { loadProgram } from "../src/commands/program.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { HELLO } from "./rollout.ts";
import { runCommand } from "./run-command.ts";

/** The arguments of each command; `undefined` for commands that call no coordinator. */
const LINES: Readonly<Record<string, string | undefined>> = {
  "forage run": "a",
  "forage apply": "-f MANIFEST",
  "forage validate": undefined,
  "forage convert": undefined,
  "forage diff": "-f MANIFEST",
  "forage scale": "container_service/a 2",
  "forage edit": "container_service/a",
  "forage plan": "-f MANIFEST",
  "forage get": "pods",
  "forage top": "pods",
  "forage describe": "pod/a",
  "forage events": "-w",
  "forage audit": "--verify",
  "forage why": "a",
  "forage job ls": "",
  "forage job run": "--from-cron a --wait",
  "forage route ls": "",
  "forage rollout status": "r-1 --watch",
  "forage rollout history": "container_service/a",
  "forage rollout undo": "container_service/a",
  "forage rollout restart": "container_service/a",
  "forage rollout pause": "container_service/a",
  "forage rollout resume": "container_service/a",
  "forage rollout promote": "container_service/a",
  "forage logs": "-f a",
  "forage attach": "a",
  "forage exec": "-i a -- sh",
  "forage port-forward": "a :80",
  "forage cp": "MANIFEST a:/b",
  "forage delete": "container_service/a --wait",
  "forage secret create": "a --from-file MANIFEST",
  "forage secret set": "a --from-file MANIFEST",
  "forage secret get": "a",
  "forage secret ls": "",
  "forage secret delete": "a",
  "forage config create": "a --from-file MANIFEST",
  "forage config set": "a --from-file MANIFEST",
  "forage config get": "a",
  "forage config ls": "",
  "forage config delete": "a",
  "forage registry set": "a b --username c --password-file MANIFEST",
  "forage registry get": "a",
  "forage registry ls": "",
  "forage registry delete": "a",
  "forage image push": "ARCHIVE --node n1",
  "forage image ls": "",
  "forage image prefetch": "a --node n1",
  "forage image rm": "a --node n1",
  "forage bundle create": undefined,
  "forage bundle verify": undefined,
  "forage bundle load": "BUNDLE --node n1 -A",
  "forage claim create": "a --capacity 1Gi",
  "forage claim get": "a",
  "forage claim ls": "",
  "forage claim delete": "a",
  "forage priority-class set": "a --value 1",
  "forage priority-class get": "a",
  "forage priority-class ls": "",
  "forage priority-class delete": "a",
  "forage node ls": "",
  "forage node add": "",
  "forage node cordon": "a",
  "forage node uncordon": "a",
  "forage node drain": "a --wait",
  "forage node taint": "a b:NoSchedule",
  "forage node untaint": "a b",
  "forage node label": "a b=c",
  "forage node remove": "a",
  "forage whatif": "--lose a",
  "forage capacity": "--cpu 1",
  "forage rebalance": "",
  "forage metric set": "a 1",
  "forage metric ls": "",
  "forage metric delete": "a",
  "forage certificate ls": "",
  "forage certificate describe": "a",
  "forage certificate renew": "a",
  "forage certificate ca": "",
  "forage ca ls": "",
  "forage ca print": "",
  "forage ca roll": "",
  "forage ca retire": "--yes",
  "forage backup create": "",
  "forage backup ls": "",
  "forage backup get": "a NEW.backup",
  "forage coordinator ls": "",
  "forage coordinator add": "",
  "forage token create": "",
  "forage token ls": "",
  "forage token revoke": "a",
  "forage namespace ls": "",
  "forage namespace policy get": "a",
  "forage namespace policy set": "a",
  "forage namespace policy ls": "",
  "forage namespace quota get": "a",
  "forage namespace quota set": "a --pods 1",
  "forage namespace quota ls": "",
  "forage workspace ls": "",
  "forage workspace start": "a --image b",
  "forage workspace stop": "a",
  "forage workspace snapshot": "a",
  "forage workspace logs": "a",
  "forage workspace open": "a",
  "forage workspace ssh": "a",
  "forage workspace content ls": "",
  "forage workspace content archives": "",
  "forage workspace content download": "a --output NEW.tar.zst",
  "forage workspace content retry": "a",
  "forage workspace content discard": "a --yes",
  "forage notification ls": "",
  "forage notification test": "a",
  "forage support-bundle": "NEW.tar.gz",
  "forage doctor": "",
  "forage context add": undefined,
  "forage context use": undefined,
  "forage context ls": undefined,
  "forage context rm": undefined,
  "forage version": undefined,
  "forage completion": undefined,
  "forage help": undefined,
};

const program = await loadProgram();
let dir: string;
let coordinator: FakeCoordinator;
const SERVERS: Server[] = [];
const sockets = new Set<Socket>();
const FORAGE = await bundledProgram("forage");
const CHILDREN: ChildProcess[] = [];
/**
 * Create servers: one that accepts connections and sends nothing, and one that sends nothing after
 * the TLS handshake.
 */
let makeSilent: readonly (() => Server)[];
/** The address of one server of each kind. */
let silent: readonly string[];

before(async () => {
  coordinator = await FakeCoordinator.start();
  dir = mkdtempSync(join(tmpdir(), "forage-time-limit-"));
  writeFileSync(join(dir, "hello.yaml"), HELLO);
  const image = { layer: Buffer.alloc(1024), entrypoint: [], cmd: [], env: [] };
  writeFileSync(join(dir, "images.tar"), packOciArchive({ ...image, reference: "localhost/a:1" }));
  await runCommand(words("forage bundle create", "BUNDLE --image localhost/a:1 --archive ARCHIVE"));
  const tls = await coordinator.issueServer();
  makeSilent = [() => createTcpServer(), () => createTlsServer({ ...tls, ALPNProtocols: ["h2"] })];
  silent = await Promise.all(makeSilent.map((make) => listen(make())));
});

after(() => {
  for (const child of CHILDREN) child.kill("SIGKILL");
  for (const socket of sockets) socket.destroy();
  for (const server of SERVERS) server.close();
  coordinator.close();
  rmSync(dir, { recursive: true });
});

function words(path: string, operands: string): string[] {
  // An abandoned command may remove its partial file after the next one has created its own.
  const fresh = operands.includes("NEW") ? join(mkdtempSync(join(dir, "new-")), "file") : "";
  const line = operands
    .replaceAll("MANIFEST", join(dir, "hello.yaml"))
    .replaceAll("ARCHIVE", join(dir, "images.tar"))
    .replaceAll("BUNDLE", join(dir, "bundle.tar"))
    .replaceAll("NEW", fresh);
  return [...path.split(" ").slice(1), ...line.split(" ").filter(Boolean)];
}

describe("a coordinator that accepts and never answers", { concurrency: 8 }, () => {
  for (const path of leavesOf(program)) {
    const operands = LINES[path];
    test(`ends ${path} when the time given by --timeout is over`, async () => {
      assert.ok(path in LINES, `${path} has no line in this test`);
      if (operands === undefined) return;
      for (const server of silent) {
        const started = performance.now();
        const argv: readonly string[] = ["--timeout", "50ms", ...words(path, operands)];
        const env = { ...coordinator.env, FORAGE_SERVER: server };
        const { exitCode, stderr } = await runCommand(argv, { env });
        assert.deepEqual([exitCode, stderr !== ""], [4, true], `${argv.join(" ")}: ${stderr}`);
        // The limit is well below the 30 s of a request without --timeout.
        assert.ok(performance.now() - started < 15_000, argv.join(" "));
      }
    });
  }
});

test("ends a command that waits for standard input when it times out or is interrupted", async () => {
  const open = new PassThrough();
  const slow = await runCommand(["--timeout", "20ms", "validate", "-f", "-"], { input: open });
  assert.deepEqual([slow.exitCode, slow.stderr], [4, "forage: the time given by --timeout is over\n"]);
  const signal = AbortSignal.abort(new Error("stop"));
  assert.equal((await runCommand(["apply", "-f", "-"], { input: open, signal })).exitCode, 1);
});

test("validates --timeout in every command", async () => {
  const { exitCode, stderr } = await runCommand(["version", "--timeout", "soon"]);
  assert.equal(exitCode, 1);
  assert.match(stderr, /--timeout: "soon" is not a duration/);
});

test("accepts a time-out beyond the longest timer of node without firing at once", async () => {
  const { exitCode } = await runCommand(["--timeout", "40d", "get", "pods"], {
    env: coordinator.env,
    signal: AbortSignal.timeout(200),
  });
  assert.notEqual(exitCode, 4);
});

describe("the process", { timeout: 120_000 }, () => {
  for (const argv of [
    ["get", "pods"],
    ["logs", "-f", "a"],
  ]) {
    test(`exits forage ${argv.join(" ")} when the time is over, and on the first SIGTERM`, async () => {
      for (const make of makeSilent) {
        const timed = start(["--timeout", "100ms", ...argv], await listen(make()));
        assert.equal(await timed.ended, 4, timed.stderr());
        // Each process needs its own server, which might otherwise accept an earlier connection
        // only now.
        const server = make();
        const isConnected = once(server, "connection");
        const terminated = start(argv, await listen(server));
        await Promise.race([isConnected, terminated.ended]);
        terminated.child.kill("SIGTERM");
        assert.equal(await terminated.ended, 143, terminated.stderr());
      }
    });
  }

  test("exits forage apply -f - on the first SIGTERM while its standard input is open", async () => {
    const { child, ended, stderr } = start(["apply", "-f", "-"], silent[0] ?? "");
    // This is more than a pipe buffers, so once it is written the command must be reading.
    await new Promise((resolve) => child.stdin?.write(Buffer.alloc(1_000_000, " "), resolve));
    child.kill("SIGTERM");
    assert.equal(await ended, 143, stderr());
  });
});

/** Returns the address of a server that keeps its connections open until the tests are over. */
async function listen(server: Server): Promise<string> {
  SERVERS.push(server);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function leavesOf(command: Command, path = command.name): string[] {
  if (command.subcommands.length === 0) return [path];
  return command.subcommands.flatMap((each) => leavesOf(each, `${path} ${each.name}`));
}

function start(argv: readonly string[], server: string) {
  const env = {
    PATH: process.env.PATH ?? "",
    FORAGE_CONFIG: "/dev/null",
    ...coordinator.env,
    FORAGE_SERVER: server,
  };
  const child = spawn(process.execPath, [FORAGE, ...argv], { env, stdio: "pipe" });
  CHILDREN.push(child);
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  child.stdin.on("error", () => {});
  child.stdout.resume();
  return {
    child,
    stderr: () => stderr,
    ended: new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code))),
  };
}
