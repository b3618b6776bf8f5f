import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { ContainerSecurity, ContainerSpec } from "../src/runtime/runtime.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { PLAIN_SECURITY, rejectsWith, runToEnd } from "./runtime-contract.ts";

const USER_IMAGE = "localhost/forage/user:1";
const NAMED_IMAGE = "localhost/forage/named:1";

let it: NerdctlUnderTest;
before(async () => {
  it = await openNerdctl();
  const files = {
    "/etc/passwd": "root:x:0:0:root:/:/bin/sh\napp:x:1234:2345::/:/bin/sh\n",
    "/etc/group": "root:x:0:\napp:x:2345:\nextra:x:3456:app\n",
  };
  await it.host.loadImage({ name: USER_IMAGE, files, config: { User: "1234" } });
  await it.host.loadImage({ name: NAMED_IMAGE, files, config: { User: "app:app" } });
});
after(() => it?.close());

const security = (change: Partial<ContainerSecurity>): ContainerSecurity => ({
  ...PLAIN_SECURITY,
  ...change,
});

/** Runs a script to its end and returns its output, without the last line break. */
async function said(script: string, change: Partial<ContainerSpec>, signal: AbortSignal): Promise<string> {
  const spec = it.spec(["sh", "-c", script], change);
  const { id } = await runToEnd(it, spec, signal);
  await it.runtime.remove([id], signal);
  return readFileSync(spec.logFile, "utf8").trimEnd();
}

/** Returns the line of the container's first process in /proc/self/status. */
async function status(
  change: Partial<ContainerSpec>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const text = await said("cat /proc/self/status", change, signal);
  return new Map(
    text.split("\n").map((line) => [line.split(":")[0] ?? "", line.slice(line.indexOf(":") + 1).trim()]),
  );
}

const CAPS = {
  CHOWN: 0n,
  KILL: 5n,
  NET_BIND_SERVICE: 10n,
  NET_ADMIN: 12n,
  NET_RAW: 13n,
  SYS_ADMIN: 21n,
} as const;
type Cap = keyof typeof CAPS;

const has = (mask: string | undefined, cap: Cap) => ((BigInt(`0x${mask}`) >> CAPS[cap]) & 1n) === 1n;

for (const [what, change, expected] of [
  ["the image's own", { image: USER_IMAGE }, "1234 2345 2345 3456"],
  ["the image's own, by name", { image: NAMED_IMAGE }, "1234 2345 2345 3456"],
  ["none: root", {}, "0 0 0"],
  [
    "a user the image doesn't know: root's group",
    { user: { uid: 7777, supplementalGroups: [] } },
    "7777 0 0",
  ],
  [
    "a user the image knows: its group",
    { image: NAMED_IMAGE, user: { uid: 1234, supplementalGroups: [] } },
    "1234 2345 2345 3456",
  ],
  ["user and group", { user: { uid: 1000, gid: 3000, supplementalGroups: [] } }, "1000 3000 3000"],
  [
    "user, group and others",
    { user: { uid: 1000, gid: 3000, supplementalGroups: [4000, 5000] } },
    "1000 3000 3000 4000 5000",
  ],
  [
    "a group alone: the image's user",
    { image: NAMED_IMAGE, user: { gid: 4444, supplementalGroups: [] } },
    "1234 4444 4444",
  ],
  ["groups alone", { user: { supplementalGroups: [6000] } }, "0 0 0 6000"],
] as const) {
  test(`user: ${what}`, async ({ signal }) => {
    assert.equal(await said('echo "$(id -u) $(id -g) $(id -G)"', change, signal), expected);
  });
}

test("run_as_non_root: rejects the image's root user, unless a user is given or the image has another one", async ({
  signal,
}) => {
  const nonRoot = security({ runAsNonRoot: true });
  const refused = async (change: Partial<ContainerSpec>, message: RegExp) => {
    const run = it.runtime.run(it.spec(["true"], { security: nonRoot, ...change }), signal);
    await rejectsWith("START_FAILED", run);
    await assert.rejects(run, message);
  };
  await refused({}, /runs as root \(user ""\): set run_as_user or drop run_as_non_root/);
  await refused({ image: NAMED_IMAGE }, /names its user \(user "app:app"\)/);
  await refused({ user: { uid: 0, supplementalGroups: [] } }, /run_as_user is 0/);
  assert.equal(await said("id -u", { security: nonRoot, image: USER_IMAGE }, signal), "1234");
  const user = { uid: 99, supplementalGroups: [] };
  assert.equal(await said("id -u", { security: nonRoot, user }, signal), "99");
  assert.deepEqual(await it.runtime.list(signal), []);
});

for (const [what, capabilities, there, missing] of [
  ["defaults", { add: [], drop: [] }, ["CHOWN", "KILL", "NET_RAW"], ["NET_ADMIN", "SYS_ADMIN"]],
  ["added", { add: ["NET_ADMIN"], drop: [] }, ["CHOWN", "NET_ADMIN"], ["SYS_ADMIN"]],
  ["dropped", { add: [], drop: ["CAP_KILL", "net_raw"] }, ["CHOWN"], ["KILL", "NET_RAW"]],
  ["all dropped", { add: [], drop: ["ALL"] }, [], ["CHOWN", "KILL", "NET_RAW", "NET_BIND_SERVICE"]],
  [
    "all dropped but one",
    { add: ["NET_BIND_SERVICE"], drop: ["ALL"] },
    ["NET_BIND_SERVICE"],
    ["CHOWN", "KILL"],
  ],
  ["all added but one", { add: ["ALL"], drop: ["SYS_ADMIN"] }, ["NET_ADMIN", "CHOWN"], ["SYS_ADMIN"]],
  ["added and dropped", { add: ["NET_ADMIN"], drop: ["NET_ADMIN"] }, ["CHOWN"], ["NET_ADMIN"]],
] as const) {
  test(`capabilities: ${what}`, async ({ signal }) => {
    const masks = await status({ security: security({ capabilities }) }, signal);
    for (const set of ["CapEff", "CapBnd", "CapPrm"]) {
      for (const cap of there) assert.equal(has(masks.get(set), cap), true, `${set} ${cap}`);
      for (const cap of missing) assert.equal(has(masks.get(set), cap), false, `${set} ${cap}`);
    }
  });
}

test("forbids privilege escalation on request", async ({ signal }) => {
  assert.equal((await status({}, signal)).get("NoNewPrivs"), "0");
  const forbidden = { security: security({ allowPrivilegeEscalation: false }) };
  assert.equal((await status(forbidden, signal)).get("NoNewPrivs"), "1");
});

test("a read-only root has writable mounts", async ({ signal }) => {
  const change = {
    security: security({ readOnlyRootFilesystem: true }),
    binds: [{ source: it.logDir, target: "/data", readOnly: false }],
  };
  const text = await said(
    "exec 2>&1; touch /x; touch /data/written && echo ok; cat /etc/hostname",
    change,
    signal,
  );
  assert.match(text, /Read-only file system\nok\nweb$/);
});

test("privileged: every capability, every device, no seccomp", async ({ signal }) => {
  const change = { security: security({ privileged: true }) };
  const masks = await status(change, signal);
  assert.equal(has(masks.get("CapEff"), "SYS_ADMIN"), true);
  assert.equal(masks.get("Seccomp"), "0");
  assert.equal(await said("test -c /dev/kmsg && echo yes", change, signal), "yes");
  assert.equal(await said("test -c /dev/kmsg || echo no", {}, signal), "no");
});

test("seccomp: a filter by default, none, or a profile of the host", async ({ signal }) => {
  assert.equal((await status({}, signal)).get("Seccomp"), "2");
  const unconfined = { security: security({ seccomp: { type: "Unconfined" } }) };
  assert.equal((await status(unconfined, signal)).get("Seccomp"), "0");
  const path = join(it.host.dir, "no-mkdir.json");
  const profile = {
    defaultAction: "SCMP_ACT_ALLOW",
    syscalls: [{ names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO" }],
  };
  writeFileSync(path, JSON.stringify(profile));
  const localhost = { security: security({ seccomp: { type: "Localhost", path } }) };
  const script = "exec 2>&1; mkdir /tmp/x || touch /tmp/y && echo ok";
  assert.match(await said(script, localhost, signal), /Operation not permitted\nok$/);
  const missing = { security: security({ seccomp: { type: "Localhost", path: "/no/such.json" } }) };
  await rejectsWith("START_FAILED", it.runtime.run(it.spec(["true"], missing), signal));
});

test("devices: exactly the given one, with its permissions", async ({ signal }) => {
  const device = { hostPath: "/dev/kmsg", containerPath: "/dev/log-of-kernel", permissions: "r" };
  const script =
    "exec 2>&1; head -c 1 /dev/log-of-kernel >/dev/null && echo read; echo x >/dev/log-of-kernel; test -e /dev/kmsg || echo no";
  // Reading the kernel's log requires this capability.
  const capabilities = { add: ["SYSLOG"], drop: [] };
  const text = await said(script, { devices: [device], security: security({ capabilities }) }, signal);
  assert.match(text, /^read\n.*not permitted\nno$/);
  for (const hostPath of ["/dev/no-such-device", "/etc/hostname"]) {
    const run = it.runtime.run(it.spec(["true"], { devices: [{ ...device, hostPath }] }), signal);
    await rejectsWith("START_FAILED", run);
  }
});

test("rejects se_linux_type on a host without SELinux", async ({ signal }) => {
  const run = it.runtime.run(it.spec(["true"], { security: security({ seLinuxType: "spc_t" }) }), signal);
  await rejectsWith("START_FAILED", run);
  await assert.rejects(run, /this host has no SELinux/);
});

test("rejects a capability that doesn't exist, and a user out of range", async ({ signal }) => {
  for (const change of [
    { security: security({ capabilities: { add: ["NET_ADMINN"], drop: [] } }) },
    { user: { uid: 2 ** 31, supplementalGroups: [] } },
    { security: security({ privileged: true, allowPrivilegeEscalation: false }) },
  ]) {
    await rejectsWith("START_FAILED", it.runtime.run(it.spec(["true"], change), signal));
  }
});
