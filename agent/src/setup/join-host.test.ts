import assert from "node:assert/strict";
import { hostname } from "node:os";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { mintJoinToken } from "@forage/identity/join-token";
import { parse } from "yaml";
import { readConfig } from "../config.ts";
import { type JoiningHost, joinHost } from "./join-host.ts";
import { parseSetupTask } from "./setup-flags.ts";

const { token } = mintJoinToken({
  ...{ pin: "A".repeat(43), nowMs: 0 },
  randomBytes: (count) => new Uint8Array(count),
});
const SETTINGS = "/etc/forage/agent.yaml.d/50-join.yaml";
const TOKEN = "/etc/forage/join-token";
const WRITTEN = "the files are written; the agent joins when it is started";

test("writes the settings and the token, starts the agent, waits until it is ready and removes the token", async () => {
  const host = aHost([undefined, ["coordinator: joining"], ["coordinator: joining"], []]);
  host.files.set("-", { text: token, mode: 0o600 });
  await join(host, ["--coordinator", "[2001:db8::1]:7600", "--name", "edge-2", "--token-file", "-"]);
  assert.deepEqual(parse(host.files.get(SETTINGS)?.text ?? ""), {
    ...{ coordinator: "[2001:db8::1]:7600", nodeName: "edge-2", joinTokenFile: TOKEN },
  });
  assert.deepEqual(host.units, [
    "enable forage-logs.socket forage-agent.service",
    "restart forage-logs.socket forage-agent.service",
  ]);
  assert.equal(host.tokenMode, 0o600);
  assert.equal(host.files.has(TOKEN), false);
  assert.deepEqual(host.lines, [
    "waiting: the agent does not answer yet",
    "waiting: coordinator: joining",
    "node edge-2 is Ready",
  ]);
});

test("writes the addresses of all coordinators, so that the agent has them from its first start", async () => {
  const host = aHost([[]]);
  const three = ["192.0.2.1:7600", "[2001:db8::2]:7600", "c3.example:7600", "192.0.2.1:7600"];
  await join(host, [...three.flatMap((it) => ["--coordinator", it]), "--name", "edge-2", token]);
  assert.deepEqual(parse(host.files.get(SETTINGS)?.text ?? ""), {
    ...{
      coordinator: three[0],
      coordinators: [three[1], three[2]],
      nodeName: "edge-2",
      joinTokenFile: TOKEN,
    },
  });

  const many = aHost([[]]);
  const eleven = Array.from({ length: 11 }, (_, at) => ["--coordinator", `192.0.2.${at}:7600`]);
  await assert.rejects(join(many, [...eleven.flat(), token]), {
    message: /coordinators: must be a list of 1 to 9 HOST:PORT/,
  });
  assert.equal(many.files.size, 0);
});

test("gives the reason if the node is not ready in time, and leaves the agent running", async () => {
  const host = aHost([["coordinator: the join token has expired"]]);
  await assert.rejects(join(host, ["--timeout", "5", token]), {
    message: /is not Ready after 5 s: coordinator: the join token has expired/,
  });
  assert.equal(host.files.has(TOKEN), true);
});

test("ends at once with the reason if the coordinator rejects the token", async () => {
  const host = aHost([["coordinator: joining"], ["coordinator: refused because the token has been used"]]);
  const startMs = host.clock.monotonicMs();
  await assert.rejects(join(host, ["--timeout", "600", token]), {
    message: /^the coordinator refuses node .*: coordinator: refused because the token has been used/,
  });
  assert.ok(host.clock.monotonicMs() - startMs < 60_000);
});

test("rejects a host that has already joined, and explains how to join again", async () => {
  const host = aHost([[]]);
  host.files.set("/var/lib/forage/agent/identity/node.pem", { text: "", mode: 0o600 });
  await assert.rejects(join(host, [token]), { message: /has joined a fleet as .*forage node remove/ });
  assert.deepEqual(host.units, []);
  assert.equal(host.files.has(SETTINGS), false);
});

test("reads the token from a file, and rejects anything else before it writes", async () => {
  const host = aHost([[]]);
  host.files.set("/run/token", { text: `${token}\n`, mode: 0o600 });
  await join(host, ["--token-file", "/run/token", "--no-start"]);
  assert.equal(host.files.get(TOKEN)?.text, `${token}\n`);
  assert.deepEqual(host.units, []);

  const other = aHost([[]]);
  await assert.rejects(join(other, ["FLT1.nonsense"]), { exitCode: 2 });
  assert.equal(other.files.size, 0);
});

test("reads the token from standard input, and warns about a token in the command line", async () => {
  const host = aHost([[]]);
  host.files.set("-", { text: `${token}\n`, mode: 0o600 });
  await join(host, ["--no-start"]);
  assert.equal(host.files.get(TOKEN)?.text, `${token}\n`);
  assert.deepEqual(host.lines, [WRITTEN]);

  const older = aHost([[]]);
  await join(older, ["--no-start", token]);
  assert.equal(older.files.get(TOKEN)?.text, `${token}\n`);
  assert.match(
    String(older.lines[0]),
    /^warning: others on this host can read the token in the command line/,
  );

  await assert.rejects(join(aHost([[]]), []), { exitCode: 2, message: /standard input holds no token/ });
});

test("rejects incomplete command lines with the usage", () => {
  for (const help of ["--help", "-h"]) assert.deepEqual(parseSetupTask([help]), { type: "help" });
  for (const line of [
    [],
    ["join", "a", "b"],
    ["join", "a", "--token-file", "b"],
    ["join", "a", "--timeout", "0"],
  ])
    assert.throws(() => parseSetupTask(line), { exitCode: 2, message: /usage: forage-agent join/ });
});

function join(host: JoiningHost, args: readonly string[]): Promise<void> {
  const task = parseSetupTask(["join", ...args]);
  assert.ok(task.type === "join");
  return joinHost(task, host, AbortSignal.timeout(60_000));
}

interface FakeHost extends JoiningHost {
  readonly files: Map<string, { readonly text: string; readonly mode: number }>;
  readonly units: string[];
  readonly lines: string[];
  tokenMode: number;
}

/** `answers` are the agent's reasons at each query; the last one repeats. */
function aHost(answers: readonly (readonly string[] | undefined)[]): FakeHost {
  const clock = new VirtualClock();
  const left = [...answers];
  const host: FakeHost = {
    ...{ files: new Map(), units: [], lines: [], tokenMode: 0, clock },
    readText: async (path) => host.files.get(path)?.text ?? "",
    writeText: async (path, text, mode) => {
      if (path === TOKEN) host.tokenMode = mode;
      host.files.set(path, { text, mode });
    },
    remove: async (path) => void host.files.delete(path),
    exists: async (path) => host.files.has(path),
    readConfig: (_, flags) =>
      readConfig(
        ["--data-dir", "/var/lib/forage/agent", "--coordinator", "127.0.0.1:7600", ...flags],
        {},
        hostname(),
      ),
    systemctl: async (...args) => void host.units.push(args.join(" ")),
    readiness: async () => {
      // Ends the pause after this query.
      setImmediate(() => clock.advance(1_000));
      const reasons = left.length > 1 ? left.shift() : left[0];
      return reasons && { reasons, isRefused: reasons.some((reason) => reason.includes(" refused ")) };
    },
    report: (line) => void host.lines.push(line),
  };
  return host;
}
