import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { bundlePrograms } from "../bundling/bundle-programs.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { bareImage } from "../system/bare-image.ts";
import { webManifest } from "../system/manifests.ts";
import { getPods, waitForReadyPods } from "../system/pods.ts";
import { type System, startSystem, waitForNode } from "../system/system.ts";
import { Terminal } from "../system/terminal.ts";

const LIMIT = { timeout: 180_000 };
const forage = join(import.meta.dirname, "..", "forage");

/** Counts what a connection sends until it ends, answers on the loopback address only, and writes numbered lines. */
const APP = `
echo started; echo complaint >&2
nc -ll -p 7001 -e wc -c &
mkdir -p /www && echo only here > /www/index.html && httpd -p 127.0.0.1:7002 -h /www
echo ready
exec sleep 100000`;

describe("sessions with real containers", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let pod: string;
  const env = () => ({ FORAGE_CONFIG: join(host.dir, "cli.yaml") });

  before(async () => {
    host = await startTestHost();
    system = await startSystem(host);
    const manifest = webManifest({ image: host.image, replicas: 1, command: ["sh", "-c", APP] });
    const { exitCode, stderr } = await system.forage(["apply", "-f", "-"], manifest);
    assert.equal(exitCode, 0, stderr);
    pod = (await waitForReadyPods(system, 1))[0]?.name ?? "";
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  /** Starts a command that runs until it is ended. */
  function start(args: readonly string[]): { child: ChildProcess; said: () => string } {
    const child = spawn(forage, args, {
      env: { ...process.env, ...env() },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
    }
    return { child, said: () => text };
  }

  async function inPod(script: string): Promise<string> {
    return (await system.forage(["exec", pod, "-n", "e2e", "--", "sh", "-c", script])).stdout;
  }

  async function processes(): Promise<string> {
    return (await system.forage(["exec", pod, "-n", "e2e", "--", "ps", "-o", "args"])).stdout;
  }

  test("exec -it: passes size, its changes, keys, Ctrl-C and the exit code", LIMIT, async (t) => {
    const terminal = new Terminal(forage, ["exec", "-it", pod, "-n", "e2e", "--", "sh"], {
      env: env(),
      columns: 100,
      rows: 30,
    });
    t.after(() => terminal.kill());
    await terminal.shows("#");
    terminal.type("stty size\r");
    await terminal.shows("30 100");
    terminal.resize(120, 40);
    // The new size passes through five processes, so the test asks until it has arrived.
    const asking = setInterval(() => terminal.type("stty size\r"), 300);
    t.after(() => clearInterval(asking));
    await terminal.shows("40 120");
    clearInterval(asking);
    terminal.type("trap 'echo caug''ht' INT; sleep 4321; echo after''wards\r");
    await waitFor(async () => (await processes()).includes("sleep 4321"), {
      what: "it sleeps",
      limitMs: 60_000,
    });
    terminal.type("\x03");
    await terminal.shows("caught");
    await terminal.shows("afterwards");
    terminal.type("exit 7\r");
    assert.equal(await terminal.exitCode, 7);
    assert.doesNotMatch(terminal.screen, /level=fatal|forage:/);
  });

  test("attach: lines reach the container's own program, and keys end the command only", LIMIT, async (t) => {
    const command = ["sh", "-c", "while read line; do echo got $line; [ $line != end ] || exit 7; done"];
    const container = { name: "main", image: host.image, command, stdin: true };
    const containerService = { scaling: { replicas: 1 }, container };
    const manifest = JSON.stringify({ namespace: "e2e", resources: [{ name: "reader", containerService }] });
    assert.equal((await system.forage(["apply", "-f", "-"], manifest)).exitCode, 0);
    const reader = (await getPods(system)).find(({ name }) => name.startsWith("reader"))?.name ?? "";
    const attach = (): Terminal => {
      const args = ["attach", reader, "-n", "e2e"];
      const terminal = new Terminal(forage, args, { env: env(), columns: 80, rows: 24 });
      t.after(() => terminal.kill());
      return terminal;
    };
    for (const word of ["one", "two"]) {
      const terminal = attach();
      terminal.type(`${word}\r`);
      await terminal.shows(`got ${word}`);
      terminal.type("\x1d\r");
      assert.equal(await terminal.exitCode, 0, terminal.screen);
    }
    // Two clients share the input, and each ends with the container.
    const clients = [attach(), attach()];
    // A client is attached once it has its own answer. It does not receive earlier output.
    for (const [index, client] of clients.entries()) {
      client.type(`alone-${index}\r`);
      await client.shows(`got alone-${index}`);
    }
    for (const [index, client] of clients.entries()) {
      client.type(`from-${index}\r`);
      for (const other of clients) await other.shows(`got from-${index}`);
    }
    clients[0]?.type("end\r");
    for (const client of clients) assert.equal(await client.exitCode, 7, client.screen);
    // The container restarts, and reads to the end of its input.
    const ended = async () => {
      const { exitCode, stdout } = await system.forage(
        ["attach", reader, "-n", "e2e", "--end-input"],
        "last\n",
      );
      return exitCode === 0 && stdout.includes("got last");
    };
    await waitFor(ended, { what: "the program reads to the end of its input", limitMs: 60_000 });
    const { child, said } = start(["attach", pod, "-n", "e2e"]);
    await waitFor(() => said().includes("has no open standard input"), { what: "a note", limitMs: 60_000 });
    child.kill("SIGINT");
  });

  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    test(`exec without a terminal: ${signal} ends the command in the container`, LIMIT, async () => {
      const { child } = start(["exec", pod, "-n", "e2e", "--", "sleep", "1234"]);
      await waitFor(async () => (await processes()).includes("sleep 1234"), {
        what: "it runs",
        limitMs: 60_000,
      });
      child.kill(signal);
      const [code] = (await once(child, "exit")) as [number];
      assert.equal(code, signal === "SIGINT" ? 130 : 143);
      await waitFor(async () => !(await processes()).includes("sleep 1234"), {
        what: "it ends",
        limitMs: 60_000,
      });
    });
  }

  test(
    "port-forward: supports half-closed connections, many at once, loopback ports, refusals, and its end",
    LIMIT,
    async (t) => {
      const { child, said } = start(["port-forward", pod, "-n", "e2e", ":7001", ":7002", ":7003"]);
      t.after(() => child.kill("SIGKILL"));
      const ports = await waitFor(
        () => {
          const found = [...said().matchAll(/^127\.0\.0\.1:(\d+) → /gm)].map(([, port]) => Number(port));
          return found.length === 3 ? found : undefined;
        },
        { what: "it listens", limitMs: 60_000, explain: said },
      );
      const [counting = 0, loopback = 0, nobody = 0] = ports;
      const counts = await Promise.all(
        [0, 1, 70_000, 5_000_000].map((bytes) => talk(counting, Buffer.alloc(bytes, "x"))),
      );
      assert.deepEqual(
        counts.map((text) => text.trim()),
        ["0", "1", "70000", "5000000"],
      );
      assert.match(await talk(loopback, Buffer.from("GET / HTTP/1.0\r\n\r\n")), /only here/);
      await assert.rejects(talk(nobody, Buffer.from("x")), { code: "ECONNRESET" });
      const refusal = "connection refused: nothing in the pod listens on port 7003";
      await waitFor(() => said().includes(refusal), {
        what: "the refusal is printed",
        limitMs: 60_000,
        explain: said,
      });
      child.kill("SIGINT");
      assert.deepEqual(await once(child, "exit"), [130, null]);
    },
  );

  test("logs: supports times, a start time, and following over a restart of the agent", LIMIT, async (t) => {
    const logs = (...options: string[]) => system.forage(["logs", pod, "-n", "e2e", ...options]);
    const stamped = await logs("--timestamps", "--tail", "1");
    assert.match(stamped.stdout, /^\d{4}-\d\d-\d\dT[\d:.]+Z\S* ready\n$/, stamped.stderr);
    assert.match((await logs("--since", "1h")).stdout, /^started\n/m);
    assert.equal((await logs("--since", "2999-01-01T00:00:00Z")).stdout, "");
    const { child, said } = start(["logs", "-f", pod, "-n", "e2e", "--tail", "1"]);
    t.after(() => child.kill("SIGKILL"));
    const shows = (text: string) =>
      waitFor(() => said().includes(text), { what: text, limitMs: 60_000, explain: said });
    await shows("ready\n");
    await inPod("echo before >/proc/1/fd/1");
    await shows("before\n");
    await system.agent.kill();
    system.agent.start();
    await waitForNode(system);
    // The node counts as ready for a while, even before the agent is back.
    const write = ["exec", pod, "-n", "e2e", "--", "sh", "-c", "echo after >/proc/1/fd/1"];
    await waitFor(async () => (await system.forage(write)).exitCode === 0, {
      what: "exec works again",
      limitMs: 60_000,
    });
    await shows("after\n");
    assert.deepEqual(
      said()
        .split("\n")
        .filter((line) => /^(ready|before|after)$/.test(line)),
      ["ready", "before", "after"],
    );
  });

  test("logs: one stream of two is followed over a restart of agent and log reader", LIMIT, async (t) => {
    const outDir = join(host.dir, "reader");
    const programs = { logs: "agent/src/log-reader/main.ts" };
    await bundlePrograms({ root: join(import.meta.dirname, "..", ".."), outDir, programs });
    let lives = 0;
    const startReader = async () => {
      lives += 1;
      const args = [join(outDir, "logs.mjs"), "--dir", join(host.dir, "agent", "log-streams")];
      const reader = host.spawn(`reader-${lives}`, process.execPath, args);
      await waitFor(() => reader.readLog().includes("log-reader-started"), {
        what: "the log reader runs",
        limitMs: 60_000,
        explain: () => reader.readLog(),
      });
      return reader;
    };
    const reader = await startReader();
    const script = "echo out; echo err >&2; exec sleep 100000";
    const web = webManifest({
      name: "apart",
      image: host.image,
      replicas: 1,
      command: ["sh", "-c", script],
    });
    const manifest = web.replace(
      '"podConfig":{',
      '"podConfig":{"annotations":{"forage.dev/log-streams":"separate"},',
    );
    const applied = await system.forage(["apply", "-f", "-"], manifest);
    assert.equal(applied.exitCode, 0, applied.stderr);
    const logs = (...options: string[]) =>
      system.forage(["logs", "container_service/apart", "-n", "e2e", ...options]);
    await waitFor(async () => (await logs("--stream", "stderr")).stdout === "err\n", {
      what: "stderr alone",
      limitMs: 60_000,
    });
    assert.equal((await logs("--stream", "stdout")).stdout, "out\n");
    const one = await system.forage(["logs", pod, "-n", "e2e", "--stream", "stderr"]);
    assert.notEqual(one.exitCode, 0);
    assert.match(one.stderr, /forage\.dev\/log-streams: separate/);
    const wrong = await system.forage(["apply", "-f", "-"], manifest.replace('"separate"', '"split"'));
    assert.match(wrong.stderr, /annotations\["forage\.dev\/log-streams"\]: must be combined or separate/);

    const [apart] = (await system.forage(["get", "pods", "-n", "e2e", "-o", "name"])).stdout
      .split("\n")
      .filter((line) => line.includes("apart"));
    const name = apart?.split("/").at(-1) ?? "";
    const { child, said } = start(["logs", "-f", name, "-n", "e2e", "--stream", "stderr"]);
    t.after(() => child.kill("SIGKILL"));
    const shows = (text: string) =>
      waitFor(() => said().includes(text), { what: text, limitMs: 60_000, explain: said });
    await shows("err\n");
    await system.agent.kill();
    reader.kill("SIGKILL");
    await reader.exited;
    await startReader();
    system.agent.start();
    await waitForNode(system);
    const write = ["exec", name, "-n", "e2e", "--", "sh", "-c", "echo no; echo after >/proc/1/fd/2"];
    await waitFor(async () => (await system.forage(write)).exitCode === 0, {
      what: "exec works again",
      limitMs: 60_000,
    });
    await shows("after\n");
    assert.deepEqual(
      said()
        .split("\n")
        .filter((line) => /^(out|err|no|after)$/.test(line)),
      ["err", "after"],
    );
  });

  test("cp: a directory is copied in and out again unchanged, with its modes and times", LIMIT, async () => {
    const from = join(host.dir, "tree");
    mkdirSync(join(from, "deep/er"), { recursive: true });
    const big = randomBytes(5_000_000);
    writeFileSync(join(from, "deep/big"), big);
    writeFileSync(join(from, "deep/er/tool"), "#!/bin/sh\n", { mode: 0o750 });
    symlinkSync("er/tool", join(from, "deep/link"));
    symlinkSync("/etc/passwd", join(from, "outward"));
    utimesSync(join(from, "deep/er/tool"), 1_600_000_000, 1_600_000_000);
    const into = await system.forage(["cp", from, `${pod}:/tmp`, "-n", "e2e"]);
    assert.deepEqual([into.exitCode, into.stderr], [0, ""]);
    const seen = await inPod(
      "cd /tmp/tree && stat -c '%n %a %u %Y' deep/er/tool && wc -c <deep/big && readlink deep/link",
    );
    assert.equal(seen, "deep/er/tool 750 0 1600000000\n5000000\ner/tool\n");
    const out = await system.forage(["cp", `pod/${pod}:/tmp/tree`, join(host.dir, "back"), "-n", "e2e"]);
    assert.deepEqual(
      [out.exitCode, readFileSync(join(host.dir, "back/deep/big")).equals(big)],
      [1, true],
      out.stderr,
    );
    assert.match(
      out.stderr,
      /^left out: tree\/outward is a link that leads out of what is copied, to \/etc\/passwd\n/,
    );
    assert.equal(statSync(join(host.dir, "back/deep/er/tool")).mode & 0o777, 0o750);
    assert.equal(statSync(join(host.dir, "back/deep/er/tool")).mtimeMs, 1_600_000_000_000);
  });

  test(
    "cp: links of the container are resolved in the container, and impossible copies are reported",
    LIMIT,
    async () => {
      const outside = join(host.dir, "outside");
      mkdirSync(outside);
      writeFileSync(join(outside, "secret"), "of the host");
      await inPod(
        `ln -s ${outside} /tmp/absolute; ln -s ../../../../../../../..${outside} /tmp/up; ln -s /proc/1/root /tmp/root`,
      );
      const gift = join(host.dir, "gift");
      writeFileSync(gift, "x");
      for (const [args, reason] of [
        [[gift, `${pod}:/tmp/up/gift`], /is missing/],
        [[gift, `${pod}:/tmp/root${outside}/gift`], /is missing/],
        [[`${pod}:/tmp/absolute/secret`, host.dir], /is missing/],
        [[`${pod}:/nothing`, host.dir], /there is no \/nothing in the container/],
        [[`${pod}:/dev/null`, host.dir], /is a device, which can't be copied/],
        [[gift, `${pod}:/proc/gift`], /EACCES|ENOENT|EPERM|may not|no such/i],
      ] as const) {
        const { exitCode, stderr } = await system.forage(["cp", ...args, "-n", "e2e"]);
        assert.equal(exitCode, 1, args.join(" "));
        assert.match(stderr, reason);
      }
      assert.deepEqual(readdirSync(outside), ["secret"]);
    },
  );

  test("cp: works with a container without a shell or tar", LIMIT, async () => {
    const image = await bareImage(host);
    const manifest = webManifest({ name: "bare", image, replicas: 1, command: ["/sleep", "100000"] });
    assert.equal((await system.forage(["apply", "-f", "-"], manifest)).exitCode, 0);
    const ready = async () =>
      (await getPods(system)).find(({ name, status }) => name.startsWith("bare-") && status?.ready)?.name;
    const bare = await waitFor(ready, { what: "its pod is ready", limitMs: 60_000 });
    writeFileSync(join(host.dir, "note"), "for the bare one");
    const into = await system.forage(["cp", join(host.dir, "note"), `${bare}:/tmp/renamed`, "-n", "e2e"]);
    assert.equal(into.exitCode, 0, into.stderr);
    const out = await system.forage(["cp", `${bare}:/tmp/renamed`, `${host.dir}/`, "-n", "e2e"]);
    assert.equal(out.exitCode, 0, out.stderr);
    assert.equal(readFileSync(join(host.dir, "renamed"), "utf8"), "for the bare one");
  });

  test("port-forward to a service uses one of its pods", LIMIT, async (t) => {
    const refused = await system.forage(["port-forward", "service/web", "-n", "e2e", "81"]);
    assert.match(refused.stderr, /service\/web has no port 81; it has 80/);
    const { child, said } = start(["port-forward", "service/web", "-n", "e2e", ":80"]);
    t.after(() => child.kill("SIGKILL"));
    await waitFor(() => said().includes(`→ ${pod}:80`), {
      what: "it listens",
      limitMs: 60_000,
      explain: said,
    });
  });
});

/** Sends the data and closes its side. Returns what the other side sends until its end. */
async function talk(port: number, data: Buffer): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  socket.end(data);
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += chunk;
  return text;
}
