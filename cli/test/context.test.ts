import assert from "node:assert/strict";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { aNode, aResource } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { HELLO } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
let dir: string;
let config: string;

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = { listPods: () => ({ pods: [], kept: [] }) };
  dir = mkdtempSync(join(tmpdir(), "forage-context-"));
  config = join(dir, "config.yaml");
});
afterEach(() => rmSync(dir, { recursive: true }));

function forage(argv: readonly string[], env: Record<string, string> = {}): Promise<Result> {
  return runCommand(argv, { env: { FORAGE_CONFIG: config, ...env } });
}

function add(name: string, ...more: readonly string[]): Promise<Result> {
  const given = { "--server": fake.address, "--ca-file": fake.caFile, "--token-file": fake.tokenFile };
  const rest = Object.entries(given).filter(([flag]) => !more.includes(flag));
  return forage(["context", "add", name, ...rest.flat(), ...more]);
}

async function shop(env: Record<string, string> = {}, ...flags: string[]): Promise<unknown> {
  const { exitCode, stderr } = await forage(["get", "pods", ...flags], env);
  assert.equal(exitCode, 0, stderr);
  const [request] = fake.requests("listPods").splice(-1) as { namespace: string }[];
  return request?.namespace;
}

describe("contexts", () => {
  test("uses the first added context by default, or one chosen by use, the environment or a flag", async () => {
    assert.match((await add("prod", "-n", "shop")).stdout, /it is the current one\n$/);
    assert.match((await add("lab", "-n", "tests")).stdout, /to use it: forage context use lab\n$/);
    assert.equal(await shop(), "shop");
    assert.equal(await shop({ FORAGE_CONTEXT: "lab" }), "tests");
    assert.equal(await shop({ FORAGE_CONTEXT: "lab" }, "--context", "prod"), "shop");
    assert.equal((await forage(["context", "use", "lab"])).exitCode, 0);
    assert.equal(await shop(), "tests");
    const { stdout } = await forage(["context", "ls"]);
    assert.deepEqual(
      stdout.split("\n").map((line) => line.split(/ +/).slice(0, 2)),
      [["USED", "CONTEXT"], ["-", "prod"], ["*", "lab"], [""]],
    );
  });

  test("uses only the context's own settings", async () => {
    await add("prod");
    writeFileSync(config, `namespace: outside\n${readFileSync(config, "utf8")}`);
    assert.equal(await shop(), "default");
    assert.equal((await forage(["context", "rm", "prod"])).stderr, "there is no current context now\n");
    assert.match((await forage(["get", "pods"])).stderr, /no CA file: name one with --ca-file/);
  });

  test("reports a missing context, which the context commands can fix", async () => {
    await add("prod");
    const { exitCode, stderr } = await forage(["get", "pods", "--context", "prd"]);
    assert.equal(exitCode, 1);
    assert.match(stderr, /there is no context "prd" in .*config\.yaml \(did you mean "prod"\?\)/);
    writeFileSync(config, readFileSync(config, "utf8").replace("current: prod", "current: gone"));
    assert.match((await forage(["get", "pods"])).stderr, /there is no context "gone"/);
    assert.equal((await forage(["context", "use", "prod"])).exitCode, 0);
    assert.equal(await shop(), "default");
    for (const verb of ["use", "rm"])
      assert.match((await forage(["context", verb, "none"])).stderr, /there is no context "none"/);
  });

  test("refuses invalid contexts, and leaves the file unchanged", async () => {
    await add("prod");
    const before = readFileSync(config, "utf8");
    for (const [argv, message] of [
      [["add", "prod"], /needs --server, --ca-file and --token-file/],
      [["add", "a b"], /"a b" is not the name of a context/],
      [["add"], /NAME is missing/],
    ] as const)
      assert.match((await forage(["context", ...argv])).stderr, message);
    assert.match((await add("prod")).stderr, /--replace replaces it/);
    assert.match((await add("x", "--server", "a b")).stderr, /is not a server address/);
    assert.match((await add("x", "--ca-file", join(dir, "none"))).stderr, /CA file .* does not exist/);
    assert.equal(readFileSync(config, "utf8"), before);
    assert.deepEqual(readdirSync(dir), ["config.yaml"]);
    assert.equal((await add("prod", "--replace", "-n", "new")).exitCode, 0);
    assert.equal(await shop(), "new");
  });

  test("refuses invalid contexts in the file with their path", async () => {
    for (const [text, message] of [
      ["contexts: [a]", /contexts must hold a name/],
      ["contexts: {a: b}", /contexts\.a must hold server/],
      ["contexts: {a: {severr: b}}", /unknown key "contexts\.a\.severr" \(did you mean "server"\?\)/],
      ["contexts: {a: {token: flt_secret}}", /keep the token in a file of its own/],
      ["contexts: {'a b': {}}", /"a b" is not the name/],
      ["current: 1", /current must be the name/],
      ["contxts: {}", /unknown key "contxts" \(did you mean "contexts"\?\)/],
    ] as const) {
      writeFileSync(config, text);
      const { stderr } = await forage(["get", "pods"]);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /flt_secret/);
    }
  });

  test("keeps the file private, keeps a link to it, and refuses to replace a device", async () => {
    await add("prod");
    assert.equal(statSync(config).mode & 0o777, 0o600);
    const real = join(dir, "real.yaml");
    const link = join(dir, "link.yaml");
    writeFileSync(real, "");
    symlinkSync(real, link);
    assert.equal((await add("prod", "--config", link)).exitCode, 0);
    assert.match(readFileSync(real, "utf8"), /prod/);
    const device = join(dir, "device");
    symlinkSync("/dev/null", device);
    assert.match((await add("prod", "--config", device)).stderr, /is not a regular file/);
    assert.ok(existsSync("/dev/null") && !statSync("/dev/null").isFile());
  });
});

describe("questions before something is lost", () => {
  const onTerminal = (argv: readonly string[], answer: string): Promise<Result> =>
    runCommand(argv, {
      env: { FORAGE_CONFIG: config },
      input: Object.assign(Readable.from([answer]), { isTTY: true }),
    });

  beforeEach(async () => {
    await add("prod");
    fake.answers = {
      listResources: () => ({ resources: [aResource({ name: "old" })] }),
      drainNode: () => ({ node: aNode() }),
      forgetNode: () => ({ pods: 1, claims: [] }),
    };
  });

  test("names the context in a question", async () => {
    const manifest = join(dir, "hello.yaml");
    writeFileSync(manifest, HELLO);
    const place = `context "prod" (${fake.address})`;
    for (const argv of [
      ["delete", "--all"],
      ["apply", "-f", manifest],
      ["node", "drain", "n1", "--force"],
      ["node", "remove", "n1"],
      ["workspace", "content", "discard", "w1"],
    ]) {
      const { exitCode, stderr } = await onTerminal(argv, "n\n");
      assert.deepEqual([exitCode, stderr.includes(place)], [1, true], stderr);
    }
    const sent = fake.calls.map(({ method }) => method).filter((method) => method !== "listResources");
    assert.deepEqual(sent, []);
  });

  test("names the coordinator in a question if it is not the context's", async () => {
    const argv = ["delete", "--all", "--server", fake.address.replace("127.0.0.1", "localhost")];
    assert.match((await onTerminal(argv, "n\n")).stderr, /of coordinator localhost:\d+\?/);
  });

  test("asks nothing with --yes, and fails without a terminal", async () => {
    for (const argv of [
      ["node", "drain", "n1", "--force"],
      ["node", "remove", "n1"],
    ]) {
      assert.equal((await forage(argv)).exitCode, 0);
      assert.equal((await onTerminal([...argv, "--yes"], "n\n")).exitCode, 0);
      assert.equal((await onTerminal(argv, "y\n")).exitCode, 0);
    }
  });
});
