import assert from "node:assert/strict";
import { test } from "node:test";
import { RuntimeError } from "../runtime.ts";
import { affectsNerdctl, splitEnv } from "./env-passing.ts";

const one = (name: string, value: string) => splitEnv([{ name, value }]);

for (const [what, name, value] of [
  ["a plain value", "A", "b"],
  ["an empty value", "A", ""],
  ["leading space and quotes", "A", `  "x" 'y' $HOME #z`],
  ["a name the tools obey", "LD_PRELOAD", "/x.so"],
  ["an equals sign in the value", "A", "b=c=d"],
  ["a name with dots and dashes", "a.b-c", "x"],
] as const) {
  test(`passes ${what} in the file`, () => {
    assert.deepEqual(one(name, value), { file: `${name}=${value}\n`, inherited: {} });
  });
}

for (const [what, name, value] of [
  ["a line break", "KEY", "-----BEGIN\nabc\n"],
  ["a carriage return", "A", "x\r"],
  ["trailing space", "A", "x "],
  ["trailing no-break space", "A", "x\u00a0"],
  ["trailing next-line", "A", "x\u0085"],
  ["a name that looks like a comment", "#A", "x"],
  ["more than a line of the file may hold", "A", "x".repeat(60_000)],
] as const) {
  test(`passes ${what} in nerdctl's own environment`, () => {
    assert.deepEqual(one(name, value), { file: "", inherited: { [name]: value } });
  });
}

for (const [what, name, value] of [
  ["an empty name", "", "x"],
  ["an equals sign in the name", "A=B", "x"],
  ["a zero byte", "A", "x\0y"],
  ["more than execve takes", "A", "x".repeat(128 * 1024)],
  ["a line break under a name that the tools obey", "LD_PRELOAD", "/secret\n"],
  ["the same in small letters", "https_proxy", "secret\n"],
] as const) {
  test(`rejects ${what} without showing the value`, () => {
    assert.throws(
      () => one(name, value),
      (error) =>
        error instanceof RuntimeError && error.code === "START_FAILED" && !error.message.includes("secret"),
    );
  });
}

test("the later of two variables with one name wins", () => {
  const both = [
    { name: "A", value: "1" },
    { name: "A", value: "2\n" },
  ];
  assert.deepEqual(splitEnv(both), { file: "", inherited: { A: "2\n" } });
});

test("accepts the names of users' own variables", () => {
  for (const name of ["GOOGLE_CREDENTIALS", "TLS_CERT", "PATHS", "HOMEPAGE", "LDAP", "A"])
    assert.equal(affectsNerdctl(name), false, name);
  for (const name of ["PATH", "Path", "LD_AUDIT", "GODEBUG", "CNI_PATH", "CONTAINERD_ADDRESS", "no_proxy"])
    assert.equal(affectsNerdctl(name), true, name);
});
