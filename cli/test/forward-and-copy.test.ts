import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, beforeEach, describe, test } from "node:test";
import { encodeHeader, paddingFor, readTar, TAR_END } from "@forage/archive";
import type { CopyRequest, PortForwardRequest } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { parsePorts } from "../src/commands/port-forward.ts";
import { aPod } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
let dir: string;
const LIMIT = { timeout: 180_000 };

before(async () => {
  fake = await FakeCoordinator.start();
  dir = mkdtempSync(join(tmpdir(), "forage-cli-test-"));
});
after(() => {
  fake.close();
  rmSync(dir, { recursive: true, force: true });
});
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = { listPods: () => ({ kept: [], pods: [aPod()] }) };
});

/** Runs port-forward until `use` has finished with the announced ports. */
async function forwarding(args: string, use: (ports: readonly number[]) => Promise<void>): Promise<Result> {
  const stop = new AbortController();
  const announced = Promise.withResolvers<readonly number[]>();
  const running = runCommand(["port-forward", ...args.split(" ")], {
    env: fake.env,
    signal: stop.signal,
    onOutput: (text) => announced.resolve([...text.matchAll(/:(\d+) → /g)].map(([, port]) => Number(port))),
  });
  const ended = running.then(() => []);
  await use(await Promise.race([announced.promise, ended]));
  stop.abort();
  return running;
}

async function talk(port: number, text: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  socket.end(text);
  let heard = "";
  for await (const chunk of socket.setEncoding("utf8")) heard += chunk;
  return heard;
}

describe("port-forward", LIMIT, () => {
  test("passes on the end of each side separately", async () => {
    const starts: unknown[] = [];
    fake.answers.portForward = (call) => {
      let heard = "";
      call.on("data", ({ frame }: PortForwardRequest) => {
        if (frame?.$case === "start") starts.push(frame.value);
        if (frame?.$case === "data") heard += frame.value.toString();
        if (frame?.$case !== "closed") return;
        call.write({ data: Buffer.from(`heard ${heard.length}`), closed: false });
        call.write({ data: Buffer.alloc(0), closed: true });
        call.end();
      });
    };
    const { stdout, exitCode } = await forwarding("web-1 :80 -n shop", async ([port = 0]) => {
      const answers = await Promise.all([talk(port, ""), talk(port, "x".repeat(100_000))]);
      assert.deepEqual(answers, ["heard 0", "heard 100000"]);
    });
    assert.match(stdout, /^127\.0\.0\.1:\d+ → web-1:80\n$/);
    assert.equal(exitCode, 1);
    assert.deepEqual(starts[0], { namespace: "shop", pod: "web-1", port: 80 });
  });

  test("reports a refusal, resets the connection, and keeps other connections", async () => {
    fake.answers.portForward = (call) =>
      void call.emit("error", grpcError(status.FAILED_PRECONDITION, "connection refused: nothing listens"));
    const { stderr } = await forwarding("web-1 :80", async ([port = 0]) => {
      await assert.rejects(talk(port, "x"), { code: "ECONNRESET" });
      await assert.rejects(talk(port, "x"), { code: "ECONNRESET" });
    });
    assert.match(stderr, /^(forage: connection refused: nothing listens\n){2}/);
  });

  test("ends when the pod is deleted", async () => {
    fake.answers.portForward = (call) =>
      void call.emit("error", grpcError(status.NOT_FOUND, 'there is no pod "web-1"'));
    const { stderr, exitCode } = await forwarding("web-1 :80", async ([port = 0]) => {
      await assert.rejects(talk(port, "x"));
    });
    assert.equal(exitCode, 1);
    assert.match(stderr, /there is no pod "web-1"/);
  });

  test("parses ports", async () => {
    assert.deepEqual(parsePorts("80"), { local: 80, remote: 80 });
    assert.deepEqual(parsePorts("8080:80"), { local: 8080, remote: 80 });
    assert.deepEqual(parsePorts(":80"), { local: 0, remote: 80 });
    for (const text of ["", "0", "65536", "a", "80:", "1:2:3", "99999:80", "-1"])
      assert.throws(() => parsePorts(text), { code: "USAGE" }, text);
    const { stderr } = await runCommand(["port-forward", "node/n1", "80"], { env: fake.env });
    assert.match(stderr, /nodes have no ports here/);
  });
});

describe("cp", LIMIT, () => {
  const cp = (...args: string[]) => runCommand(["cp", ...args], { env: fake.env });
  const entry = { type: "file", mode: 0o644, modifiedMs: 0, target: "", sizeBytes: 4 } as const;
  const sending = (...paths: string[]) => {
    fake.answers.copy = (call) => {
      for (const path of paths) {
        const data = Buffer.concat([encodeHeader({ ...entry, path }), Buffer.from("text"), paddingFor(4)]);
        call.write({ data, remarks: Buffer.alloc(0) });
      }
      call.write({ data: TAR_END, remarks: Buffer.alloc(0) });
      call.end();
    };
  };

  test("copies out to a new name, or into a directory under its own name", async () => {
    sending("real-name");
    assert.equal((await cp("web-1:/var/log/app", join(dir, "new"))).exitCode, 0);
    assert.equal((await cp("pod/web-1:/var/log/app", dir)).exitCode, 0);
    assert.equal(readFileSync(join(dir, "new"), "utf8") + readFileSync(join(dir, "app"), "utf8"), "texttext");
    assert.match((await cp("web-1:/x", join(dir, "none/"))).stderr, /there is no directory/);
    assert.match((await cp("web-1:/x", join(dir, "none/x"))).stderr, /no such file or directory/);
  });

  test("writes nothing outside of the target if a container's archive names other paths", async () => {
    const target = join(dir, "target");
    mkdirSync(target);
    for (const path of ["../evil", "/etc/evil", "a/../../evil", "a//b"]) {
      sending(path);
      const { exitCode, stderr } = await cp("web-1:/x", target);
      assert.equal(exitCode, 1);
      assert.match(stderr, /leads elsewhere/, path);
    }
    sending("one", "two");
    assert.equal((await cp("web-1:/x", join(target, "file"))).exitCode, 1);
    assert.deepEqual(readdirSync(target), ["file"]);
  });

  test("omits a container's links that lead out of the copy", async () => {
    fake.answers.copy = (call) => {
      const header = { ...entry, sizeBytes: 0 };
      const made = [
        encodeHeader({ ...header, type: "directory", mode: 0o755, path: "top" }),
        encodeHeader({ ...header, type: "link", path: "top/evil", target: "/etc/passwd" }),
      ];
      call.write({ data: Buffer.concat([...made, TAR_END]), remarks: Buffer.alloc(0) });
      call.end();
    };
    const { exitCode, stderr } = await cp("web-1:/x", join(dir, "linked"));
    assert.equal(exitCode, 1);
    assert.match(stderr, /top\/evil is a link that leads out of what is copied/);
    assert.deepEqual(readdirSync(join(dir, "linked")), []);
  });

  test("streams existing files into a container, and shows warnings and failures of the other side", async () => {
    const names: string[] = [];
    fake.answers.copy = (call) => {
      const chunks = new PassThrough();
      call.on("data", ({ frame }: CopyRequest) => {
        if (frame?.$case === "data") chunks.write(frame.value);
        if (frame?.$case === "closed") chunks.end();
      });
      void (async () => {
        for await (const { header } of readTar(chunks)) names.push(header.path);
        call.write({ data: Buffer.alloc(0), remarks: Buffer.from("dir/x is a pipe\n") });
        call.end();
      })();
    };
    mkdirSync(join(dir, "dir/sub"), { recursive: true });
    writeFileSync(join(dir, "dir/sub/file"), "x".repeat(300_000));
    const { exitCode, stderr } = await cp(`${dir}/dir/`, "web-1:/tmp");
    assert.deepEqual(names, ["dir/", "dir/sub/", "dir/sub/file"]);
    assert.equal(exitCode, 1);
    assert.equal(stderr, "left out: dir/x is a pipe\nforage: copied, but 1 of it was left out\n");
    fake.answers.copy = (call) =>
      void call.emit("error", grpcError(status.FAILED_PRECONDITION, "no space is left"));
    assert.match((await cp(join(dir, "dir"), "web-1:/tmp")).stderr, /no space is left/);
  });

  test("refuses ambiguous operands before anything is sent", async () => {
    for (const [args, message] of [
      [["a", "b"], /exactly one of SOURCE and TARGET is POD:\/PATH/],
      [["p:/a", "p:/b"], /exactly one of/],
      [["web-1:relative", "b"], /paths in containers begin with \//],
      [[join(dir, "nothing"), "web-1:/x"], /no such file or directory/],
    ] as const) {
      const { exitCode, stderr } = await cp(...args);
      assert.equal(exitCode, 1);
      assert.match(stderr, message);
    }
    assert.deepEqual(fake.requests("copy"), []);
  });
});
