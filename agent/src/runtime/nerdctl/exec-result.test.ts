import assert from "node:assert/strict";
import { test } from "node:test";
import { RuntimeError } from "../runtime.ts";
import { execOutcomeOf, FinalMessageFilter } from "./exec-result.ts";

const fatal = (message: string) => `time="2026-11-21T10:11:58Z" level=fatal msg=${JSON.stringify(message)}\n`;
const SEVEN = fatal("exec failed with exit code 7");

/** Returns the user's output and the result for a standard error that arrives in pieces. */
function read(exitCode: number, pieces: readonly string[]) {
  const words = new FinalMessageFilter();
  let seen = "";
  for (const piece of pieces) seen += words.push(Buffer.from(piece)).toString("latin1");
  const end = words.end(exitCode);
  return { seen: seen + end.rest.toString("latin1"), ...execOutcomeOf(exitCode, end.words) };
}

for (const [what, exitCode, text, expected] of [
  ["nothing and success", 0, "", { seen: "", exitCode: 0 }],
  ["a failure", 1, SEVEN, { seen: "", exitCode: 7 }],
  ["output with no line break before it", 1, `partial${SEVEN}`, { seen: "partial", exitCode: 7 }],
  ["death by a signal", 1, fatal("exec failed with exit code 137"), { seen: "", exitCode: 137 }],
  ["the same line from the command, which succeeded", 0, SEVEN, { seen: SEVEN, exitCode: 0 }],
  [
    "the same line from the command, which failed",
    1,
    fatal("exec failed with exit code 3") + SEVEN,
    { seen: fatal("exec failed with exit code 3"), exitCode: 7 },
  ],
  ["the start of such a line", 1, `time="x${SEVEN}`, { seen: 'time="x', exitCode: 7 }],
  [
    "a command's log in the same format",
    0,
    'time="2026" level=info msg=hello\n',
    { seen: 'time="2026" level=info msg=hello\n', exitCode: 0 },
  ],
] as const) {
  test(`parses ${what} in pieces of every size`, () => {
    for (let size = 1; size <= Math.max(1, text.length); size += 1) {
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        text.slice(i * size, (i + 1) * size),
      );
      assert.deepEqual(read(exitCode, pieces), expected, `pieces of ${size}`);
    }
  });
}

test("passes output on at once if it can't be a message of nerdctl", () => {
  const words = new FinalMessageFilter();
  assert.equal(words.push(Buffer.from("Password: ")).toString(), "Password: ");
  assert.equal(words.push(Buffer.from("the time")).toString(), "the ");
  assert.equal(words.push(Buffer.from("s are")).toString(), "times are");
  assert.equal(words.push(Buffer.from(`${'time="'}${"x".repeat(50)}`)).length, 56);
});

const OCI = "OCI runtime exec failed: exec failed: unable to start container process: exec: ";
for (const [said, exitCode, complaint] of [
  [
    `${OCI}"nope": executable file not found in $PATH: unknown`,
    127,
    'exec: "nope": executable file not found in $PATH\n',
  ],
  [
    `${OCI}"/x": stat /x: no such file or directory: unknown`,
    127,
    'exec: "/x": stat /x: no such file or directory\n',
  ],
  [`${OCI}"/etc/passwd": permission denied: unknown`, 126, 'exec: "/etc/passwd": permission denied\n'],
] as const) {
  test(`reports that the command could not be started: ${exitCode} ${complaint.trim()}`, () => {
    assert.deepEqual(execOutcomeOf(1, fatal(said)), { exitCode, complaint });
  });
}

for (const [said, code] of [
  ["no such container abc", "NOT_FOUND"],
  ["cannot exec in a stopped state: unknown", "NOT_FOUND"],
  ['cannot access containerd socket "/c.sock": no such file or directory', "UNAVAILABLE"],
] as const) {
  test(`throws without a result: ${said}`, () => {
    assert.throws(
      () => execOutcomeOf(1, fatal(said)),
      (error) => error instanceof RuntimeError && error.code === code,
    );
  });
}

test("a killed nerdctl gives no result for the command", () => {
  assert.throws(() => execOutcomeOf(undefined, SEVEN), RuntimeError);
  assert.throws(() => execOutcomeOf(1, ""), RuntimeError);
});
