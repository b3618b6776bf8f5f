import assert from "node:assert/strict";
import { test } from "node:test";
import { checkMembers } from "./check-members.ts";
import type { EtcdMember } from "./etcd.ts";

const up = (endpoint: string, version: string, clusterId = 1n): EtcdMember => ({
  ...{ type: "up", endpoint, version, clusterId },
});
const check = (...members: readonly EtcdMember[]) => checkMembers({ members: async () => members });

test("refuses an older member by its name and version", async () => {
  await check(up("a", "3.6.0"), up("b", "3.10.1"), up("c", "4.0.0"));
  for (const version of ["3.5.21", "2.9.9", ""])
    await assert.rejects(check(up("a", "3.6.0"), up("https://b:2379", version)), {
      code: "UNSUPPORTED",
      message: `etcd at https://b:2379 has version ${version}: the store needs 3.6 or later; upgrade that member`,
    });
});

test("refuses members of different clusters, and ignores members that don't respond", async () => {
  await check({ type: "down", endpoint: "a", reason: "no answer" }, up("b", "3.6.1"));
  await assert.rejects(
    check(up("a", "3.6.0"), up("b", "3.6.0", 2n)),
    /a and b belong to different etcd clusters/,
  );
});
