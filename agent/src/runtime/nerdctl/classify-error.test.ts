import assert from "node:assert/strict";
import { test } from "node:test";
import { classifyError, type NerdctlCall } from "./classify-error.ts";
import { findFatal } from "./fatal-line.ts";

const fatal = (message: string) => `time="2026-01-02T03:04:05Z" level=fatal msg=${JSON.stringify(message)}\n`;
const OCI = "failed to create shim task: OCI runtime create failed: runc create failed: ";
const RESOLVE = 'failed to resolve reference "r.test/a:1": ';
const HEAD = "unexpected status from HEAD request to http://r.test/v2/a/manifests/1: ";

// Messages of nerdctl 2.3.5 with containerd 1.6 and runc 1.1.
const SAID: readonly (readonly [NerdctlCall, string, string, boolean])[] = [
  ["run", 'name-store error\nname "t1" is already used by ID "8701c2c1"', "ALREADY_EXISTS", false],
  ["run", 'image not available: "localhost/forage/nope:1"', "IMAGE_NOT_FOUND", true],
  [
    "run",
    `${OCI}unable to start container process: exec: "nope": executable file not found in $PATH: unknown`,
    "START_FAILED",
    false,
  ],
  [
    "run",
    `${OCI}unable to start container process: exec: "/x": stat /x: no such file or directory: unknown`,
    "START_FAILED",
    false,
  ],
  [
    "run",
    `${OCI}unable to start container process: exec: "/etc": permission denied: unknown`,
    "START_FAILED",
    false,
  ],
  ["run", `${OCI}Cwd must be an absolute path: unknown`, "START_FAILED", false],
  [
    "run",
    `${OCI}invalid netns path: stat /run/netns/x: no such file or directory: unknown`,
    "START_FAILED",
    true,
  ],
  [
    "run",
    "failed to create shim task: failed to create init process I/O: mkdir /proc/nope: no such file or directory: unknown",
    "START_FAILED",
    true,
  ],
  [
    "run",
    'name-store error\nidentifier "-bad" must match pattern "[a-zA-Z0-9][a-zA-Z0-9_.-]": invalid argument',
    "START_FAILED",
    false,
  ],
  ["run", 'cannot access containerd socket "/c.sock": no such file or directory', "UNAVAILABLE", true],
  [
    "pull",
    `${RESOLVE}pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`,
    "IMAGE_DENIED",
    false,
  ],
  ["pull", `${RESOLVE}${HEAD}403 Forbidden`, "IMAGE_DENIED", false],
  ["pull", `${RESOLVE}r.test/a:1: not found`, "IMAGE_NOT_FOUND", false],
  ["pull", `${RESOLVE}${HEAD}500 Internal Server Error`, "REGISTRY_UNAVAILABLE", true],
  ["pull", `${RESOLVE}${HEAD}429 Too Many Requests`, "REGISTRY_UNAVAILABLE", true],
  ["pull", `${RESOLVE}failed to do request: Head "http://r.test/v2/": EOF`, "REGISTRY_UNAVAILABLE", true],
  [
    "pull",
    `${RESOLVE}failed to do request: Head "http://r.test/v2/": dial tcp 127.0.0.1:1: connect: connection refused`,
    "REGISTRY_UNAVAILABLE",
    true,
  ],
  [
    "pull",
    `${RESOLVE}failed to do request: Head "https://r.test/v2/": dial tcp: lookup r.test on 127.0.0.1:53: no such host`,
    "REGISTRY_UNAVAILABLE",
    true,
  ],
  [
    "pull",
    "failed to unpack image on snapshotter overlayfs: unexpected media type text/html for sha256:b7d0: not found",
    "IMAGE_INVALID",
    false,
  ],
  [
    "pull",
    "children: invalid desc sha256:9207: invalid character 'n' looking for beginning of object key string",
    "IMAGE_INVALID",
    false,
  ],
  ["pull", "no match for platform in manifest: not found", "IMAGE_INVALID", false],
  ["pull", 'cannot access containerd socket "/c.sock": connection refused', "UNAVAILABLE", true],
  ["other", "1 errors:\nno such container: ffff", "NOT_FOUND", false],
  [
    "other",
    'connection error: desc = "transport: Error while dialing: dial unix:///c.sock: connect: connection refused"',
    "UNAVAILABLE",
    true,
  ],
  ["other", "something new", "UNKNOWN", true],
];

for (const [call, said, code, retryable] of SAID) {
  test(`${call}: ${said.slice(0, 110).replace("\n", " ")} → ${code}`, () => {
    const error = classifyError(call, `level=info something\n${fatal(said)}`);
    assert.deepEqual([error.code, error.retryable], [code, retryable]);
  });
}

test("the message leaves out nerdctl's wrapping", () => {
  const said = `${OCI}unable to start container process: exec: "nope": executable file not found in $PATH: unknown`;
  assert.equal(classifyError("run", fatal(said)).message, 'exec: "nope": executable file not found in $PATH');
});

test("without a fatal line, the message is the last line written, bounded", () => {
  assert.equal(classifyError("other", "a\nb\n").message, "b");
  assert.equal(classifyError("other", "").message, "nerdctl failed without a message");
  assert.ok(classifyError("other", "x".repeat(5_000)).message.length < 1_100);
});

test("only a fatal line at the very end counts as nerdctl's", () => {
  assert.equal(findFatal(`${fatal("x")}more\n`), undefined);
  assert.equal(findFatal(`${fatal("x")}${fatal("y")}`)?.message, "y");
  assert.equal(findFatal(`partial${fatal('tab\t "q" é')}`)?.message, 'tab\t "q" é');
  assert.equal(findFatal(`partial${fatal("x")}`)?.start, 7);
});
