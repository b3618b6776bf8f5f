import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { CliError } from "../errors.ts";
import { resolveSettings, type SettingFlags } from "./settings.ts";

const noFlags: SettingFlags = {
  namespace: undefined,
  config: undefined,
  context: undefined,
  server: undefined,
  "ca-file": undefined,
  "token-file": undefined,
};
let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "forage-settings-"));
  mkdirSync(join(home, ".config/forage"), { recursive: true });
  for (const name of ["flag", "env", "file"]) {
    writeFileSync(join(home, `${name}.ca`), `CA of ${name}`);
    writeFileSync(join(home, `${name}.token`), `token-of-${name}\n`, { mode: 0o600 });
  }
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function config(text: string, name = ".config/forage/config.yaml"): string {
  writeFileSync(join(home, name), text);
  return join(home, name);
}

const FULL = "server: file:1\ncaFile: ~/file.ca\ntokenFile: ../../file.token\nnamespace: file\n";

describe("flag before environment before file", () => {
  test("reads the file, with paths relative to it", () => {
    config(FULL);
    const settings = resolveSettings(noFlags, { env: {}, homeDir: home });
    assert.equal(settings.namespace, "file");
    assert.deepEqual(settings.endpoint(), {
      server: "file:1",
      otherServers: [],
      caFile: join(home, "file.ca"),
      caPem: "CA of file",
      token: "token-of-file",
      tokenSource: join(home, "file.token"),
    });
  });

  test("prefers the environment to the file", () => {
    config(FULL);
    const env = {
      FORAGE_SERVER: "env:2",
      FORAGE_CA_FILE: join(home, "env.ca"),
      FORAGE_TOKEN_FILE: join(home, "env.token"),
      FORAGE_NAMESPACE: "env",
    };
    const settings = resolveSettings(noFlags, { env, homeDir: home });
    const { server, caPem, token } = settings.endpoint();
    assert.deepEqual(
      [settings.namespace, server, caPem, token],
      ["env", "env:2", "CA of env", "token-of-env"],
    );
    assert.equal(settings.flagNamespace, undefined);
  });

  test("prefers flags to everything else", () => {
    config(FULL);
    const env = { FORAGE_SERVER: "env:2", FORAGE_TOKEN: "direct", FORAGE_NAMESPACE: "env" };
    const flags = {
      namespace: "flag",
      config: undefined,
      context: undefined,
      server: "flag:3",
      "ca-file": join(home, "flag.ca"),
      "token-file": join(home, "flag.token"),
    };
    const settings = resolveSettings(flags, { env, homeDir: home });
    const { server, caPem, token } = settings.endpoint();
    assert.deepEqual(
      [settings.namespace, server, caPem, token],
      ["flag", "flag:3", "CA of flag", "token-of-flag"],
    );
    assert.equal(settings.flagNamespace, "flag");
  });

  test("prefers FORAGE_TOKEN to files", () => {
    config(FULL);
    const { token, tokenSource } = resolveSettings(noFlags, {
      env: { FORAGE_TOKEN: "direct" },
      homeDir: home,
    }).endpoint();
    assert.deepEqual([token, tokenSource], ["direct", "FORAGE_TOKEN"]);
  });

  test("prefers --config to FORAGE_CONFIG and to the default files", () => {
    config("namespace: usual\n");
    const named = config("namespace: named\n", "named.yaml");
    const flagged = config("namespace: flagged\n", "flagged.yaml");
    const env = { FORAGE_CONFIG: named };
    assert.equal(resolveSettings(noFlags, { env: {}, homeDir: home }).namespace, "usual");
    assert.equal(resolveSettings(noFlags, { env, homeDir: home }).namespace, "named");
    assert.equal(
      resolveSettings({ ...noFlags, config: flagged }, { env, homeDir: home }).namespace,
      "flagged",
    );
  });

  test("ignores empty variables", () => {
    config(FULL);
    const env = { FORAGE_SERVER: "", FORAGE_TOKEN: "", FORAGE_NAMESPACE: "", FORAGE_CONFIG: "" };
    assert.equal(resolveSettings(noFlags, { env, homeDir: home }).endpoint().server, "file:1");
  });

  test("accepts addresses with and without a port", () => {
    const cases: Record<string, string> = {
      "a.example": "a.example:7600",
      "a.example:1": "a.example:1",
      "https://a.example:1/": "a.example:1",
      "[::1]": "[::1]:7600",
      "[::1]:9": "[::1]:9",
      "10.0.0.1": "10.0.0.1:7600",
    };
    config(FULL);
    for (const [given, server] of Object.entries(cases)) {
      assert.equal(
        resolveSettings({ ...noFlags, server: given }, { env: {}, homeDir: home }).endpoint().server,
        server,
      );
    }
  });
});

test("accepts several coordinators, separated by commas or as a list in the file", () => {
  const resolved = (flags: Partial<SettingFlags>, env = {}) => {
    const settings = resolveSettings({ ...noFlags, ...flags }, { env, homeDir: home });
    const { server, otherServers } = settings.endpoint();
    return [settings.place(), server, ...otherServers];
  };
  const place = "coordinator a.example:7600, [::1]:9";
  const both = [place, "a.example:7600", "[::1]:9"];
  config(FULL);
  assert.deepEqual(resolved({ server: "a.example, [::1]:9" }), both);
  assert.deepEqual(resolved({}, { FORAGE_SERVER: "a.example,[::1]:9" }), both);
  config(FULL.replace("file:1", "[a.example, '[::1]:9']"));
  assert.deepEqual(resolved({}), both);
});

describe("errors state what to do", () => {
  const failing = (message: RegExp) => (error: unknown) =>
    error instanceof CliError && error.code === "CONFIG" && message.test(error.message);
  const endpoint =
    (flags: Partial<SettingFlags> = {}, env = {}) =>
    () =>
      resolveSettings({ ...noFlags, ...flags }, { env, homeDir: home }).endpoint();

  test("reports that nothing is set", () =>
    assert.throws(
      endpoint({}, { FORAGE_CONFIG: "/dev/null" }),
      failing(/no CA file: name one with --ca-file, FORAGE_CA_FILE or caFile/),
    ));
  test("reports a missing token", () => {
    config("caFile: ~/file.ca\n");
    assert.throws(endpoint(), failing(/no token: name a file with --token-file/));
  });
  test("reports a missing CA file", () =>
    assert.throws(
      endpoint({ "ca-file": "/nonexistent" }),
      failing(/the CA file \/nonexistent does not exist/),
    ));
  test("refuses a token file that every user can read", () => {
    config(FULL);
    chmodSync(join(home, "file.token"), 0o644);
    assert.throws(endpoint(), failing(/open to everybody; first: chmod 600/));
    chmodSync(join(home, "file.token"), 0o640);
    assert.doesNotThrow(endpoint());
  });
  test("does not quote a token file without a token", () => {
    writeFileSync(join(home, "file.token"), "one secret\nother secret", { mode: 0o600 });
    config(FULL);
    assert.throws(endpoint(), failing(/does not hold a token$/));
  });
  test("refuses an unknown key", () => {
    config("severr: x\n");
    assert.throws(endpoint(), failing(/config\.yaml: unknown key "severr" \(did you mean "server"\?\)/));
  });
  test("refuses a token in the configuration file", () => {
    config("token: flt_secret\n");
    assert.throws(
      endpoint(),
      (error) =>
        failing(/keep the token in a file of its own/)(error) && !String(error).includes("flt_secret"),
    );
  });
  test("refuses invalid YAML", () => {
    config("server: [\n");
    assert.throws(endpoint(), failing(/config\.yaml: .*at line/));
  });
  test("refuses a value of the wrong type", () => {
    config("server: 7600\n");
    assert.throws(endpoint(), failing(/server must be an address or a list of addresses/));
    config("server: [a, 1]\n");
    assert.throws(endpoint(), failing(/server must be an address or a list of addresses/));
    config("namespace: [a]\n");
    assert.throws(endpoint(), failing(/namespace must be text/));
  });
  test("reports a missing named file", () =>
    assert.throws(
      endpoint({ config: "/nonexistent" }),
      failing(/configuration file \/nonexistent does not exist/),
    ));
  test("refuses an invalid address", () =>
    assert.throws(
      endpoint({ server: "a b", "ca-file": join(home, "flag.ca") }),
      failing(/"a b" is not a server address/),
    ));
  test("refuses an empty address in a list, and too many addresses", () => {
    const ca = { "ca-file": join(home, "flag.ca") };
    assert.throws(endpoint({ ...ca, server: "a,,b" }), failing(/"" is not a server address/));
    const many = Array.from({ length: 17 }, (_, at) => `a${at}`).join();
    assert.throws(endpoint({ ...ca, server: many }), failing(/17 server addresses are too many: at most 16/));
  });
});
