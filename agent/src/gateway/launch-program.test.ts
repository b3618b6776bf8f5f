import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ProgramLauncher } from "./launch-program.ts";

const skip = existsSync("/usr/bin/systemd-analyze") ? false : "systemd-analyze is not installed";

/** Returns the arguments of systemd-run for a gateway on a host with systemd. */
async function argumentsOf(): Promise<readonly string[]> {
  const calls: (readonly string[])[] = [];
  const launcher = new ProgramLauncher({
    program: process.execPath,
    instance: "main",
    systemd: true,
    run: async (program, args) => {
      calls.push([program, ...args]);
      return "";
    },
  });
  await launcher.start(
    ["-c", "/var/lib/forage/agent/gateway/envoy.json"],
    "/var/log/forage-gateway.log",
    () => {},
  );
  const [[program, ...args] = []] = calls;
  assert.equal(program, "systemd-run");
  return args;
}

/** Runs systemd-analyze verify on an equal unit file, because systemd-run needs a running systemd. */
function verify(t: TestContext, args: readonly string[]): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-gateway-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const properties = args.flatMap((arg) =>
    arg.startsWith("--property=") ? [arg.slice("--property=".length)] : [],
  );
  const path = join(dir, "forage-gateway-main.service");
  const [program = ""] = args.slice(args.indexOf("--") + 1);
  writeFileSync(path, ["[Service]", `ExecStart=${program}`, ...properties, ""].join("\n"));
  const { stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", "--recursive-errors=no", path], {
    encoding: "utf8",
  });
  return stderr
    .split("\n")
    .filter((line) => line.includes("forage-gateway-main"))
    .join("\n");
}

test("systemd accepts the gateway's unit", { skip }, async (t) => {
  const args = await argumentsOf();
  assert.ok(args.includes("--unit=forage-gateway-main"));
  assert.equal(verify(t, args), "");
});

test("without systemd, Envoy leads its own session, so that signals to the agent's session don't reach it", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-gateway-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const log = join(dir, "envoy.log");
  const launcher = new ProgramLauncher({
    ...{ program: "/bin/sh", instance: "main", systemd: false },
    run: () => assert.fail("systemd-run is not called"),
  });
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  await launcher.start(["-c", "cut -d' ' -f1,6 /proc/$$/stat"], log, resolve);
  await ended;
  const [pid, session] = readFileSync(log, "utf8").trim().split(" ");
  assert.match(pid ?? "", /^\d+$/);
  assert.equal(session, pid);
});

test("without systemd, Envoy inherits no open file and no environment of the agent and blocks no process", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-gateway-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const log = join(dir, "envoy.log");
  const launcher = new ProgramLauncher({
    ...{ program: "/bin/sh", instance: "main", systemd: false },
    run: () => assert.fail("systemd-run is not called"),
  });
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const children = (): number => process.getActiveResourcesInfo().filter((it) => it === "ProcessWrap").length;
  process.env.FORAGE_TEST_SECRET = "s3cr3t";
  t.after(() => delete process.env.FORAGE_TEST_SECRET);

  // The script runs until the test lets it end.
  const script = `env; until [ -e "$0/over" ]; do sleep 0.01; done`;
  await launcher.start(["-c", script, dir], log, resolve);

  const waitedFor = children();
  const open = readdirSync("/proc/self/fd").map((fd) => linkOf(`/proc/self/fd/${fd}`));
  writeFileSync(join(dir, "over"), "");
  await ended;
  assert.equal(waitedFor, 0);
  assert.equal(open.includes(log), false);
  const text = readFileSync(log, "utf8");
  assert.match(text, /^PATH=/m);
  assert.doesNotMatch(text, /FORAGE_TEST_SECRET/);
});

/** Returns the path of the open file. Undefined if it has been closed since it was listed. */
function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

test("systemd rejects an unknown property or value", { skip }, async (t) => {
  const args = await argumentsOf();
  const wrong = args.map((arg) => arg.replace("LimitNOFILE=", "LimitNOFILES=").replace("=-500", "=-5000"));
  const found = verify(t, wrong);
  assert.match(found, /LimitNOFILES/);
  assert.match(found, /OOM/);
});
