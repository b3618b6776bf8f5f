import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "@forage/common/clock";
import type { ExecOptions } from "@forage/proto/forage/agent/v1/agent";
import ssh2 from "ssh2";
import { TunnelStream } from "../src/forwarding/tunnel-stream.ts";
import type { Tunnel } from "../src/link/session-broker.ts";
import { AccessStats } from "../src/workspaces/access/access-stats.ts";
import { ActivityMeter } from "../src/workspaces/access/activity-meter.ts";
import type { ReachableWorkspace } from "../src/workspaces/access/workspace-directory.ts";
import { startSshServer } from "../src/workspaces/ssh/ssh-server.ts";
import { SSH_SCHEMA } from "../src/workspaces/ssh/ssh-settings.ts";
import { tunnelToCommand, tunnelToPort } from "./support/tunnels.ts";

const LIMIT = { timeout: 180_000 };
const TOKEN = "abcdefghijklmnopqrstuvwxyz012345";

test("runs a command with its input, output, errors and exit code", LIMIT, async (t) => {
  const { ssh } = await setUp(t);
  const { stdout, stderr, code } = await ssh(["cat; echo oops >&2; exit 7"], { input: "from the client\n" });
  assert.deepEqual([stdout, code], ["from the client\n", 7]);
  assert.match(stderr, /oops/);
});

test("passes a command on unchanged", LIMIT, async (t) => {
  const { ssh } = await setUp(t);
  const { stdout } = await ssh(["printf '%s|' \"a  b\" '$HOME' \"$((1+1))\""]);
  assert.equal(stdout, "a  b|$HOME|2|");
});

test("transfers a megabyte in each direction", LIMIT, async (t) => {
  const { ssh } = await setUp(t);
  const input = "0123456789abcde\n".repeat(65_536);
  const { stdout } = await ssh(["cat"], { input });
  assert.equal(stdout.length, input.length);
  assert.ok(stdout === input);
});

test("accepts a key of the workspace, and refuses other keys and unknown workspaces", LIMIT, async (t) => {
  const { ssh, change, workspace } = await setUp(t);
  assert.equal((await ssh(["true"])).code, 0);
  assert.equal((await ssh(["true"], { user: "w2" })).code, 255);
  change({ ...workspace, sshKeys: [] });
  const refused = await ssh(["true"]);
  assert.deepEqual([refused.code, /Permission denied/.test(refused.stderr)], [255, true]);
});

test("accepts the owner token in the user name", LIMIT, async (t) => {
  const { ssh, change, workspace } = await setUp(t);
  change({ ...workspace, sshKeys: [] });
  assert.equal((await ssh(["true"], { user: `w1#${TOKEN}` })).code, 0);
  assert.equal((await ssh(["true"], { user: "w1#wrong" })).code, 255);
});

test("accepts the owner token as a password", LIMIT, async (t) => {
  const { connect } = await setUp(t);
  const client = await connect({ username: "w1", password: TOKEN });
  client.end();
  await assert.rejects(connect({ username: "w1", password: "wrong" }), /authentication methods failed/);
});

test("runs a shell in a terminal with its type and sizes", LIMIT, async (t) => {
  const { connect, execs, sizes } = await setUp(t);
  const client = await connect({ username: "w1", password: TOKEN });
  const stream = await new Promise<ssh2.ClientChannel>((resolve, reject) =>
    client.shell({ term: "screen", cols: 90, rows: 30 }, (error, channel) =>
      error ? reject(error) : resolve(channel),
    ),
  );
  let output = "";
  stream.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  stream.setWindow(40, 120, 0, 0);
  stream.write("echo $TERM\nexit 5\n");
  const code = await new Promise((resolve) => stream.once("exit", resolve));
  assert.equal(code, 5);
  assert.match(output, /screen/);
  assert.partialDeepStrictEqual(execs[0], { tty: true, size: { columns: 90, rows: 30 } });
  assert.deepEqual(sizes, ["120x40"]);
  client.end();
});

test("forwards connections to ports of the workspace only", LIMIT, async (t) => {
  const { ssh, port } = await setUp(t);
  const reached = await ssh(["-W", `localhost:${port}`], { input: "hello\n" });
  assert.equal(reached.stdout, "you sent: hello\n");
  const refused = await ssh(["-W", `192.0.2.1:${port}`], { input: "" });
  assert.equal(refused.code, 255);
});

test("copies files in both directions by sftp, without a program in the image", LIMIT, async (t) => {
  const { dir, sftp, execs, directories } = await setUp(t);
  const path = (name: string): string => join(dir, name);
  const content = Buffer.alloc(3_000_000, "some content ");
  await writeFile(path("here"), content);
  // The workspace's user is a different one.
  await chmod(dir, 0o777);
  const { stderr, code } = await sftp([
    `put ${path("here")} ${path("there")}`,
    `rename ${path("there")} ${path("renamed")}`,
    `get ${path("renamed")} ${path("back")}`,
    `rm ${path("renamed")}`,
  ]);
  assert.equal(code, 0, stderr);
  assert.ok(content.equals(await readFile(path("back"))));
  await assert.rejects(stat(path("renamed")), { code: "ENOENT" });
  assert.deepEqual([execs, directories], [[], ["/workspace"]]);
});

test("counts an open connection as activity until it ends", LIMIT, async (t) => {
  const { connect, activity, until } = await setUp(t);
  const client = await connect({ username: "w1", password: TOKEN });
  assert.equal(activity.openOf("i1"), 1);
  client.end();
  await until(() => activity.openOf("i1") === 0);
});

test("closes connections whose key or token is no longer valid", LIMIT, async (t) => {
  const { connect, change, workspace, activity, until } = await setUp(t);
  await connect({ username: "w1", password: TOKEN });
  change({ ...workspace, sshKeys: [] });
  assert.equal(activity.openOf("i1"), 1);
  change({ ...workspace, ownerToken: TOKEN.toUpperCase() });
  await until(() => activity.openOf("i1") === 0);
});

test("refuses connections of a workspace beyond its limit", LIMIT, async (t) => {
  const { connect, ssh } = await setUp(t, { connectionsPerWorkspace: 1 });
  const client = await connect({ username: "w1", password: TOKEN });
  assert.equal((await ssh(["true"])).code, 255);
  client.end();
});

test("shares channels between workspaces, and releases closed ones", LIMIT, async (t) => {
  const { connect, port } = await setUp(t, { maxChannels: 4 });
  const login = { username: "w1", password: TOKEN };
  const [client, other] = [await connect(login), await connect(login)];
  const open = (by = client): Promise<ssh2.ClientChannel | undefined> =>
    new Promise((resolve) =>
      by.forwardOut("127.0.0.1", 1, "localhost", port, (error, channel) =>
        resolve(error ? undefined : channel),
      ),
    );
  // One workspace can use at most half of the slots.
  const channels = [await open(), await open()];
  assert.equal(await open(), undefined);
  assert.equal(await open(other), undefined);
  /** The gateway detects the end of a channel slightly later. */
  const opensBy = async (by: ssh2.Client): Promise<void> => {
    for (let tries = 0; (await open(by)) === undefined; tries++)
      assert.ok(tries < 10_000, "the place is given back");
  };
  channels[0]?.destroy();
  await opensBy(client);
  client.end();
  await opensBy(other);
  await opensBy(other);
  other.end();
});

test("ends the session with the agent before it reports the end of the command", LIMIT, async (t) => {
  const { connect, tunnels } = await setUp(t);
  const client = await connect({ username: "w1", password: TOKEN });
  await new Promise((resolve) => {
    client.exec("true", (_error, channel) => channel.resume().on("exit", resolve));
  });
  assert.equal(await tunnels[0]?.toAgent.push({ frame: { $case: "stdinClosed", value: true } }), false);
  client.end();
});

test("ends the command of a client that disconnects", LIMIT, async (t) => {
  const { connect, ended, until } = await setUp(t);
  const client = await connect({ username: "w1", password: TOKEN });
  client.exec("sleep 1000", () => client.end());
  await until(() => ended.length === 1);
});

test("keeps its host key across restarts, readable by its owner only", LIMIT, async (t) => {
  const { dir, restart } = await setUp(t);
  const path = join(dir, "keys", "workspace-ssh.key");
  const before = await readFile(path, "utf8");
  await restart();
  assert.equal(await readFile(path, "utf8"), before);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

async function setUp(
  t: TestContext,
  {
    maxChannels,
    ...settings
  }: { readonly maxChannels?: number; readonly connectionsPerWorkspace?: number } = {},
) {
  const dir = await mkdtemp(join(tmpdir(), "forage-ssh-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const keys = userKeys();
  await writeFile(join(dir, "id"), keys.private, { mode: 0o600 });
  const port = await echo(t);
  const workspace: ReachableWorkspace = {
    instanceId: "i1",
    metaId: "w1",
    ownerToken: TOKEN,
    admitsEveryone: false,
    publicPorts: new Set(),
    sshKeys: ["not a key", keys.public],
    pod: { node: "a", uid: "pod-1" },
  };
  let current = workspace;
  const byMetaId = (id: string) => (id === "w1" ? current : undefined);
  const clock = systemClock;
  const activity = new ActivityMeter({ markActive: () => {} }, clock);
  const execs: ExecOptions[] = [];
  const directories: string[] = [];
  const sizes: string[] = [];
  const ended: string[] = [];
  const tunnels: Tunnel[] = [];
  const start = () =>
    startSshServer({
      settings: SSH_SCHEMA.parse({ listen: "127.0.0.1:0", ...settings }),
      dataDir: dir,
      directory: { byMetaId, byPrefix: byMetaId, byInstanceId: () => current },
      dial: (_pod, to) => new TunnelStream(tunnelToPort(to), () => {}),
      openInPod: (_pod, kind, signal) => {
        if (kind.$case === "exec") execs.push(kind.value);
        else directories.push(kind.value.directory);
        const command = kind.$case === "exec" ? kind.value : serveSftp(kind.value.directory);
        const tunnel = tunnelToCommand(command, (size) => sizes.push(size));
        tunnels.push(tunnel);
        // The broker of sessions does the same.
        signal.addEventListener("abort", () => {
          ended.push("ended");
          tunnel.toAgent.close();
        });
        return tunnel;
      },
      ...{ activity, stats: new AccessStats(), ...(maxChannels !== undefined && { maxChannels }) },
      clock,
      log: { debug: () => {} },
    });
  let server = await start();
  t.after(async () => {
    await server.close();
    activity.close();
  });
  const restart = async (): Promise<void> => {
    await server.close();
    server = await start();
  };
  return {
    ...{ dir, port, workspace, activity, execs, directories, sizes, ended, tunnels, restart },
    change: (changed: ReachableWorkspace) => {
      current = changed;
      server.recheck("i1");
    },
    ssh: (args: readonly string[], { user = "w1", input = "" } = {}) =>
      runSsh(join(dir, "id"), user, server.address.port, args, input),
    sftp: (lines: readonly string[]) => runSftp(join(dir, "id"), server.address.port, lines),
    connect: (login: { readonly username: string; readonly password: string }) =>
      connect(server.address.port, login),
    until: async (condition: () => boolean) => {
      while (!condition()) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const CLIENT_OPTIONS = [
  "StrictHostKeyChecking=no",
  "UserKnownHostsFile=/dev/null",
  "BatchMode=yes",
  "IdentitiesOnly=yes",
].flatMap((option) => ["-o", option]);

/**
 * Runs the OpenSSH client. Arguments that start with a dash precede the host, and others are the
 * command.
 */
function runSsh(key: string, user: string, port: number, args: readonly string[], input: string) {
  const isOption = args[0]?.startsWith("-") === true;
  const [options, command] = isOption ? [args, []] : [["-T"], args];
  const target = `${user}@127.0.0.1`;
  const all = [
    "-F",
    "/dev/null",
    "-i",
    key,
    "-p",
    String(port),
    ...CLIENT_OPTIONS,
    ...options,
    target,
    ...command,
  ];
  return runClient("ssh", all, input);
}

function runSftp(key: string, port: number, lines: readonly string[]) {
  const all = [
    "-F",
    "/dev/null",
    "-i",
    key,
    "-P",
    String(port),
    ...CLIENT_OPTIONS,
    "-b",
    "-",
    "w1@127.0.0.1",
  ];
  return runClient("sftp", all, `${lines.join("\n")}\n`);
}

function runClient(file: string, args: readonly string[], input: string) {
  return new Promise<{ stdout: string; stderr: string; code: number }>((resolve) => {
    const child = execFile(file, args, { maxBuffer: 10_000_000 }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr, code: child.exitCode ?? -1 }),
    );
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

function connect(
  port: number,
  login: { readonly username: string; readonly password: string },
): Promise<ssh2.Client> {
  const client = new ssh2.Client();
  return new Promise((resolve, reject) => {
    client.once("ready", () => resolve(client)).on("error", reject);
    client.connect({ host: "127.0.0.1", port, ...login });
  });
}

/** Generates keys again if necessary, because the library can't parse some of its own. */
function userKeys(): ReturnType<typeof ssh2.utils.generateKeyPairSync> {
  const keys = ssh2.utils.generateKeyPairSync("ed25519");
  const isReadable = [keys.private, keys.public].every((it) => !(ssh2.utils.parseKey(it) instanceof Error));
  return isReadable ? keys : userKeys();
}

/** Runs the agent's program for sftp on the files of this host. */
function serveSftp(directory: string): ExecOptions {
  const module = join(import.meta.dirname, "../../agent/src/sessions/sftp/serve-sftp.ts");
  const script = `import { serveSftp } from ${JSON.stringify(module)};
process.exitCode = await serveSftp(process.argv.slice(1));`;
  const run = 'exec 3< / && exec "$@"';
  const node = [process.execPath, "--input-type=module", "--eval", script];
  const user = String(process.getuid?.() || 33_333);
  const command = ["/bin/sh", "-c", run, "sh", ...node, directory, user, user, user];
  return { command, stdin: true, tty: false, size: undefined };
}

/** Starts an echo application in the workspace. */
async function echo(t: TestContext): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => socket.end(`you sent: ${data}`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}
