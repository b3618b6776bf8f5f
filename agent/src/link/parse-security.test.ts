import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerSecurityContext, PodSecurityContext } from "@forage/proto/forest/v1/forage";
import { aHost } from "../../test/a-host.ts";
import type { ContainerSecurity } from "../runtime/runtime.ts";
import { parseFsGroup, parseSecurity } from "./parse-security.ts";

type Own = Parameters<typeof ContainerSecurityContext.fromPartial>[0];
type OfPod = Parameters<typeof PodSecurityContext.fromPartial>[0];

const HOST = aHost({ seccompDir: "/profiles" });
const DEFAULTS: ContainerSecurity = {
  runAsNonRoot: false,
  readOnlyRootFilesystem: false,
  privileged: false,
  allowPrivilegeEscalation: false,
  capabilities: { add: [], drop: [] },
  seccomp: { type: "RuntimeDefault" },
};

const CASES: readonly (readonly [
  what: string,
  own: Own | undefined,
  pod: OfPod | undefined,
  gives: ReturnType<typeof parseSecurity>,
])[] = [
  ["no context: the image's user, the runtime's defaults", undefined, undefined, {}],
  ["an empty context: no new privileges", {}, undefined, { security: DEFAULTS }],
  [
    "the pod's user, group and groups, its volumes' group among them once",
    undefined,
    { runAsUser: 1000n, runAsGroup: 2000n, supplementalGroups: [3000n, 4000n, 0n], fsGroup: 4000n },
    { user: { uid: 1000, gid: 2000, supplementalGroups: [3000, 4000, 0] } },
  ],
  [
    "the container's user goes before the pod's, each by itself",
    { runAsUser: 5n },
    { runAsUser: 1000n, runAsGroup: 2000n },
    { user: { uid: 5, gid: 2000, supplementalGroups: [] }, security: DEFAULTS },
  ],
  [
    "the volumes' group alone is one of the processes' too",
    undefined,
    { fsGroup: 7n },
    { user: { supplementalGroups: [7] } },
  ],
  [
    "the pod's run_as_non_root is every container's, with its other defaults",
    undefined,
    { runAsNonRoot: true },
    { security: { ...DEFAULTS, runAsNonRoot: true, allowPrivilegeEscalation: true } },
  ],
  [
    "the pod's seccomp profile",
    undefined,
    { seccompProfile: "Unconfined" },
    { security: { ...DEFAULTS, seccomp: { type: "Unconfined" }, allowPrivilegeEscalation: true } },
  ],
  [
    "the container's seccomp profile goes before the pod's",
    { seccompProfile: "/etc/p.json" },
    { seccompProfile: "Unconfined" },
    { security: { ...DEFAULTS, seccomp: { type: "Localhost", path: "/etc/p.json" } } },
  ],
  [
    "a relative profile is one of the host's",
    { seccompProfile: "strict/p.json" },
    undefined,
    { security: { ...DEFAULTS, seccomp: { type: "Localhost", path: "/profiles/strict/p.json" } } },
  ],
  [
    "capabilities by their short names",
    { capabilities: { add: ["NET_ADMIN", "cap_chown"], drop: ["ALL"] } },
    undefined,
    { security: { ...DEFAULTS, capabilities: { add: ["NET_ADMIN", "CHOWN"], drop: ["ALL"] } } },
  ],
  [
    "a root file system that can't be written",
    { readOnlyRootFilesystem: true },
    undefined,
    { security: { ...DEFAULTS, readOnlyRootFilesystem: true } },
  ],
  [
    "privilege escalation as given",
    { allowPrivilegeEscalation: true },
    undefined,
    { security: { ...DEFAULTS, allowPrivilegeEscalation: true } },
  ],
  [
    "privileged containers may escalate anyway",
    { privileged: true },
    undefined,
    { security: { ...DEFAULTS, privileged: true, allowPrivilegeEscalation: true } },
  ],
  [
    "and so may those with SYS_ADMIN",
    { capabilities: { add: ["SYS_ADMIN"], drop: [] } },
    undefined,
    {
      security: {
        ...DEFAULTS,
        capabilities: { add: ["SYS_ADMIN"], drop: [] },
        allowPrivilegeEscalation: true,
      },
    },
  ],
];

for (const [what, own, pod, gives] of CASES) {
  test(`security: parses ${what}`, () => assert.deepEqual(parse(own, pod), gives));
}

for (const [what, own, problem] of [
  ["an SELinux type where there is no SELinux", { seLinuxType: "container_t" }, /no SELinux/],
  ["a user below zero", { runAsUser: -1n }, /run_as_user: -1/],
  ["a group beyond all ids", { runAsGroup: 2n ** 31n }, /run_as_group: 2147483648/],
  ["a capability that is an option", { capabilities: { add: ["--privileged"] } }, /not a capability/],
  ["a profile outside the profiles", { seccompProfile: "../../etc/passwd" }, /can't be a profile's path/],
] as const) {
  test(`security: rejects ${what}`, () => assert.throws(() => parse(own as Own, undefined), problem));
}

test("security: accepts an SELinux type on a host with SELinux", () => {
  const given = ContainerSecurityContext.fromPartial({ seLinuxType: "container_t" });
  const { security } = parseSecurity(given, undefined, aHost({ seLinux: true }));
  assert.equal(security?.seLinuxType, "container_t");
  const hostile = ContainerSecurityContext.fromPartial({ seLinuxType: "a,level=b" });
  assert.throws(() => parseSecurity(hostile, undefined, aHost({ seLinux: true })), /not a type/);
});

for (const [given, gives] of [
  [undefined, undefined],
  [{}, undefined],
  [{ fsGroup: 7n }, { gid: 7, changePolicy: "Always" }],
  [
    { fsGroup: 7n, fsGroupChangePolicy: "OnRootMismatch" },
    { gid: 7, changePolicy: "OnRootMismatch" },
  ],
] as const) {
  test(`parses fs_group ${JSON.stringify(given, (_, it) => (typeof it === "bigint" ? String(it) : it))}`, () =>
    assert.deepEqual(parseFsGroup(given && PodSecurityContext.fromPartial(given)), gives));
}

test("rejects an unknown change policy", () => {
  const given = PodSecurityContext.fromPartial({ fsGroup: 7n, fsGroupChangePolicy: "Never" });
  assert.throws(() => parseFsGroup(given), /neither Always nor OnRootMismatch/);
});

function parse(own: Own | undefined, pod: OfPod | undefined): ReturnType<typeof parseSecurity> {
  return parseSecurity(
    own && ContainerSecurityContext.fromPartial(own),
    pod && PodSecurityContext.fromPartial(pod),
    HOST,
  );
}
