import assert from "node:assert/strict";
import { test } from "node:test";
import { capabilityName, checkNonRoot, needsImageUser } from "./check-security.ts";

for (const user of ["", "0", "00", "root", "0:0", "root:app", ":1000"]) {
  test(`an image whose user is ${JSON.stringify(user)} runs as root`, () => {
    assert.throws(() => checkNonRoot("a:1", user), { message: /^image a:1 runs as root .*set run_as_user/ });
  });
}

for (const user of ["app", "app:app", "1000x", "-1"]) {
  test(`can't verify that an image whose user is ${JSON.stringify(user)} does not run as root`, () => {
    assert.throws(() => checkNonRoot("a:1", user), { message: /^image a:1 names its user .*to a number$/ });
  });
}

for (const user of ["1", "1000", "1000:0", "65534:nogroup"]) {
  test(`an image whose user is ${user} does not run as root`, () => {
    assert.doesNotThrow(() => checkNonRoot("a:1", user));
  });
}

test("reads the image's user only if a rule depends on it", () => {
  const nonRoot = { ...PLAIN, runAsNonRoot: true };
  assert.equal(needsImageUser({}), false);
  assert.equal(needsImageUser({ user: { supplementalGroups: [1] }, security: PLAIN }), false);
  assert.equal(needsImageUser({ security: nonRoot }), true);
  assert.equal(needsImageUser({ user: { uid: 5, supplementalGroups: [] }, security: nonRoot }), false);
  assert.equal(needsImageUser({ user: { gid: 5, supplementalGroups: [] } }), true);
});

test("accepts capabilities by any of their names, and rejects other names", () => {
  assert.deepEqual(["NET_ADMIN", "cap_net_admin", "all"].map(capabilityName), [
    "NET_ADMIN",
    "NET_ADMIN",
    "ALL",
  ]);
  for (const text of ["", "NET_ADMINX", "ALL,SYS_ADMIN", "--privileged", "CAP_CAP_KILL"])
    assert.throws(() => capabilityName(text), { code: "START_FAILED" });
});

const PLAIN = {
  runAsNonRoot: false,
  readOnlyRootFilesystem: false,
  privileged: false,
  allowPrivilegeEscalation: true,
  capabilities: { add: [], drop: [] },
  seccomp: { type: "RuntimeDefault" },
} as const;
