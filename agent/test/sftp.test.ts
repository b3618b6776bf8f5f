import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Directory } from "@forage/archive";
import { RootedFiles } from "../src/sessions/sftp/rooted-files.ts";

const LIMIT = { timeout: 180_000 };
const USER = 33_333;
const MODULE = join(import.meta.dirname, "../src/sessions/sftp/serve-sftp.ts");
/** Runs the server as the agent's program does, without the rest of the agent. */
const SCRIPT = `import { serveSftp } from ${JSON.stringify(MODULE)};
process.exitCode = await serveSftp(process.argv.slice(1));`;

test("OpenSSH's client copies, lists, renames and deletes files below the root", LIMIT, async (t) => {
  const { root, home, sftp } = setUp(t);
  const content = Buffer.alloc(3_000_000, "some content ");
  writeFileSync(join(home, "here"), content, { mode: 0o640 });
  utimesSync(join(home, "here"), 1_000_000_000, 1_000_000_000);
  const { output, code } = await sftp([
    `put -p ${home}/here there`,
    "ls -l",
    "mkdir d",
    "rename there d/renamed",
    `get d/renamed ${home}/back`,
    "ln -s d/renamed link",
    "ln d/renamed hard",
    "chmod 600 hard",
    "df",
    "pwd",
    "rm d/renamed",
    "rmdir d",
  ]);
  assert.equal(code, 0, output);
  assert.ok(content.equals(readFileSync(join(home, "back"))));
  assert.match(output, /-rw-r----- +\d+ +33333 +33333 +3000000 .* there/);
  assert.match(output, /Remote working directory: \/workspace/);
  const hard = statSync(join(root, "workspace/hard"));
  assert.deepEqual([hard.uid, hard.gid, hard.mode & 0o777, hard.mtimeMs], [USER, USER, 0o600, 1e12]);
  assert.ok(lstatSync(join(root, "workspace/link")).isSymbolicLink());
  assert.equal(existsSync(join(root, "workspace/d")), false);
});

test("lists a directory of a thousand entries completely", LIMIT, async (t) => {
  const { root, sftp } = setUp(t);
  for (let entry = 0; entry < 1_000; entry++) writeFileSync(join(root, "workspace", `f${entry}`), "");
  const { output } = await sftp(["ls -1"]);
  assert.equal(output.split("\n").filter((line) => /^f\d+$/.test(line)).length, 1_000);
});

test("links and paths never lead out of the root", LIMIT, async (t) => {
  const { root, home, sftp } = setUp(t);
  writeFileSync(join(home, "outside"), "secret", { mode: 0o644 });
  symlinkSync(join(home, "outside"), join(root, "workspace/absolute"));
  symlinkSync("../../../../../../../..", join(root, "workspace/up"));
  for (const path of ["absolute", `up${home}/outside`, `../../../../../..${home}/outside`]) {
    const { code, output } = await sftp([`get ${path} ${home}/stolen`]);
    assert.equal(code, 1, output);
    assert.equal(existsSync(join(home, "stolen")), false);
  }
  const made = await sftp([`put ${home}/outside up/workspace/inside`]);
  assert.equal(made.code, 0, made.output);
  assert.equal(readFileSync(join(root, "workspace/inside"), "utf8"), "secret");
});

test("closes every directory after a look-up", LIMIT, async (t) => {
  const { root } = setUp(t);
  writeFileSync(join(root, "workspace/file"), "");
  const directory = await Directory.open(root);
  t.after(() => directory.close());
  const files = new RootedFiles(directory, "/");
  const countOpen = (): number =>
    readdirSync("/proc/self/fd").filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(root);
      } catch {
        return false;
      }
    }).length;
  for (const follow of [true, false]) {
    await files.status("/workspace/file", follow);
    await files.status("/workspace", follow);
    await assert.rejects(files.status("/workspace/none/file", follow));
  }
  assert.equal(countOpen(), 1, "the root");
});

test("the kernel's permissions of the container's user apply", LIMIT, async (t) => {
  const { root, home, sftp } = setUp(t);
  writeFileSync(join(root, "of-root"), "secret", { mode: 0o600 });
  for (const line of [`get /of-root ${home}/x`, "rm /of-root", "chmod 666 /of-root", "mkdir /new"]) {
    const { code, output } = await sftp([line]);
    assert.equal(code, 1, line);
    assert.match(output, /[Pp]ermission denied|may not do this/);
  }
});

test("a rename replaces nothing, and pipes are not opened", LIMIT, async (t) => {
  const { root, ask } = setUp(t);
  const path = (name: string): string => join(root, "workspace", name);
  for (const name of ["a", "b"]) writeFileSync(path(name), name);
  chownSync(path("a"), USER, USER);
  execFileSync("mkfifo", ["-m", "666", path("pipe")]);
  const answers = await ask([
    packet(1, u32(3)),
    packet(18, u32(7), text("a"), text("b")),
    packet(3, u32(8), text("pipe"), u32(1), u32(0)),
    packet(5, u32(9), text("no handle"), u32(0), u32(0), u32(10)),
    packet(99, u32(10), text("x")),
    packet(17, u32(11)),
    packet(200, u32(12), text("unknown@example.org")),
  ]);
  assert.equal(answers[0]?.readUInt8(), 2);
  const [failure, badMessage, unsupported] = [4, 5, 8];
  assert.deepEqual(
    answers.slice(1).map((answer) => [answer.readUInt8(), answer.readUInt32BE(1), answer.readUInt32BE(5)]),
    [
      [101, 7, failure],
      [101, 8, failure],
      [101, 9, failure],
      [101, 10, unsupported],
      [101, 11, badMessage],
      [101, 12, unsupported],
    ],
  );
  assert.equal(readFileSync(path("b"), "utf8"), "b");
});

test("a client can open at most 128 files, and continue after closing one", LIMIT, async (t) => {
  const { root, ask } = setUp(t);
  writeFileSync(join(root, "workspace/a"), "a", { mode: 0o644 });
  const open = packet(3, u32(1), text("a"), u32(1), u32(0));
  const close = packet(4, u32(2), text("1"));
  const answers = await ask([packet(1, u32(3)), ...Array<Buffer>(129).fill(open), close, open]);
  const types = answers.map((answer) => answer.readUInt8());
  assert.equal(types.filter((type) => type === 102).length, 129);
  assert.deepEqual(types.slice(-3), [101, 101, 102]);
});

for (const [name, sent] of [
  ["a packet that is too long", [Buffer.from([0x7f, 0xff, 0xff, 0xff, 1])]],
  ["an empty packet", [u32(0)]],
  ["a request before the version", [packet(17, u32(1), text("a"))]],
] as const)
  test(`${name} ends the session with the reason`, LIMIT, async (t) => {
    const { talk } = setUp(t);
    const { code, stderr } = await talk(sent);
    assert.equal(code, 1);
    assert.match(stderr, /^! the client /);
  });

test("rejects a container that runs as root", LIMIT, async (t) => {
  const { talk } = setUp(t, 0);
  const { code, stderr } = await talk([packet(1, u32(3))]);
  assert.deepEqual([code, stderr], [1, "! sftp is served to containers whose user is not root\n"]);
});

function setUp(t: TestContext, user = USER) {
  const home = mkdtempSync(join(tmpdir(), "forage-sftp-test-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const root = join(home, "root");
  for (const path of [root, join(root, "workspace")]) mkdirSync(path);
  for (const path of [home, root]) chmodSync(path, 0o755);
  chownSync(join(root, "workspace"), USER, USER);
  const server = join(home, "server");
  const node = `${process.execPath} --input-type=module --eval "$(cat ${home}/script)"`;
  writeFileSync(join(home, "script"), SCRIPT);
  const ids = `${user} ${user} ${user}`;
  writeFileSync(server, `#!/bin/sh\nexec 3< ${root}\nexec ${node} /workspace ${ids}\n`, { mode: 0o755 });
  const talk = (packets: readonly Buffer[]) => {
    const child = spawn(server, { stdio: "pipe" });
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (data: Buffer) => stdout.push(data));
    child.stderr.on("data", (data: Buffer) => stderr.push(data));
    child.stdin.on("error", () => {});
    child.stdin.end(Buffer.concat(packets));
    return new Promise<{ code: number | null; stdout: Buffer; stderr: string }>((resolve) =>
      child.once("close", (code) =>
        resolve({ code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }),
      ),
    );
  };
  return {
    ...{ root, home, talk },
    /** Sends packets and returns the responses without their lengths. */
    ask: async (packets: readonly Buffer[]): Promise<Buffer[]> => {
      const { stdout, stderr, code } = await talk(packets);
      assert.equal(code, 0, stderr);
      const answers: Buffer[] = [];
      for (let at = 0; at < stdout.length; at += 4 + stdout.readUInt32BE(at))
        answers.push(stdout.subarray(at + 4, at + 4 + stdout.readUInt32BE(at)));
      return answers;
    },
    sftp: (lines: readonly string[]) =>
      new Promise<{ code: number; output: string }>((resolve) => {
        const child = execFile("sftp", ["-b", "-", "-D", server], (_error, stdout, stderr) =>
          resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
        );
        // The client may exit before it has read its input. The test checks its exit code.
        child.stdin?.on("error", () => {});
        child.stdin?.end(`${lines.join("\n")}\n`);
      }),
  };
}

function packet(type: number, ...fields: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from([type]), ...fields]);
  return Buffer.concat([u32(body.length), body]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([u32(value.length), Buffer.from(value)]);
}
