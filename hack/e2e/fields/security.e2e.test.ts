import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { type Json, type PodLab, shell, startPodLab } from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };

const STATUS = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status";
const IDENTITY = "id -u; id -g; id -G";
/** Numbers of capabilities in a mask. */
const NET_BIND_SERVICE = 10n;
const NET_ADMIN = 12n;
const SYS_ADMIN = 21n;
const CHOWN = 0n;

const secured = (security_context: Json, script: string, pod_config: Json = {}): Json => ({
  container: { ...shell(script), security_context },
  pod_config,
});
const inPod = (security_context: Json, script: string, container: Json = {}): Json => ({
  container: { ...shell(script), ...container },
  pod_config: { security_context },
});
const withVolume = (service: Json, volumes: readonly Json[]): Json => ({
  ...service,
  volumes,
  container: {
    ...(service.container as Json),
    volume_mounts: volumes.map(({ name }) => ({ name, mount_path: `/${name}` })),
  },
});

const services: Readonly<Record<string, Json>> = {
  plain: secured({}, `${IDENTITY}; ${STATUS}`),
  bare: { container: shell(STATUS) },
  user: secured({ run_as_user: 1234, run_as_group: 2345 }, IDENTITY),
  "user-only": secured({ run_as_user: 1234 }, IDENTITY),
  "root-refused": secured({ run_as_non_root: true }, "true"),
  "not-root": secured({ run_as_non_root: true, run_as_user: 1234 }, IDENTITY),
  "read-only": withVolume(
    secured({ read_only_root_filesystem: true }, "touch /x 2>&1; touch /scratch/y && echo written"),
    [{ name: "scratch", empty_dir: {} }],
  ),
  privileged: secured({ privileged: true }, `${STATUS}; test -c /dev/kmsg && echo devices`),
  escalating: secured({ allow_privilege_escalation: true }, STATUS),
  capabilities: secured({ capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] } }, STATUS),
  dropped: secured({ capabilities: { drop: ["CHOWN"] } }, STATUS),
  unconfined: secured({ seccomp_profile: "Unconfined" }, STATUS),
  default: secured({ seccomp_profile: "RuntimeDefault" }, STATUS),
  profile: secured({ seccomp_profile: "no-mkdir.json" }, "mkdir /tmp/x 2>&1; touch /tmp/y && echo touched"),
  selinux: secured({ se_linux_type: "container_t" }, "true"),
  "pod-user": inPod({ run_as_user: 1234, run_as_group: 2345 }, IDENTITY),
  "own-user": inPod({ run_as_user: 1234, run_as_group: 2345 }, IDENTITY, {
    security_context: { run_as_user: 99 },
  }),
  "pod-not-root": inPod({ run_as_non_root: true }, "true"),
  "pod-seccomp": inPod({ seccomp_profile: "Unconfined" }, STATUS),
  groups: inPod({ supplemental_groups: [3001, 3002], run_as_user: 1234 }, IDENTITY),
  "fs-group": withVolume(
    inPod(
      { fs_group: 4001, run_as_user: 1234 },
      `${IDENTITY}; stat -c '%g %A' /scratch; touch /scratch/x && stat -c %g /scratch/x`,
    ),
    [{ name: "scratch", empty_dir: {} }],
  ),
};

describe("security of containers and pods on a real host", { concurrency: false }, () => {
  let lab: PodLab;
  before(async () => {
    lab = await startPodLab({
      agent: (dir) => {
        mkdirSync(`${dir}/agent/seccomp`, { recursive: true });
        const syscalls = [{ names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO" }];
        const profile = { defaultAction: "SCMP_ACT_ALLOW", syscalls };
        writeFileSync(`${dir}/agent/seccomp/no-mkdir.json`, JSON.stringify(profile));
        return {};
      },
    });
    await lab.apply(services);
  }, LIMIT);
  after(() => lab?.close(), LIMIT);

  /** Returns a line of /proc/self/status inside the container. */
  async function statusOf(service: string, name: string): Promise<string> {
    return new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(await lab.output(service))?.[1] ?? "";
  }
  async function has(service: string, capability: bigint): Promise<boolean> {
    const mask = BigInt(`0x${await statusOf(service, "CapEff")}`);
    return (mask & (1n << capability)) !== 0n;
  }
  async function refusal(service: string): Promise<string> {
    const pod = await lab.until(service, "is refused", (it) => {
      const container = it.status?.containers?.[0];
      return (it.status?.message ?? "") !== "" || (container?.waiting?.message ?? "") !== "";
    });
    const { message, containers } = pod.status ?? {};
    return `${message} ${containers?.[0]?.waiting?.message} ${containers?.[0]?.lastTermination?.message}`;
  }

  test("security_context.run_as_user and run_as_group: set the ids of the process", LIMIT, async () => {
    assert.equal(await lab.output("user"), "1234\n2345\n2345\n");
    assert.match(await lab.output("user-only"), /^1234\n0\n/);
    assert.match(await lab.output("plain"), /^0\n0\n/);
  });

  test(
    "security_context.run_as_non_root: an image that runs as root is refused with the reason",
    LIMIT,
    async () => {
      assert.match(await refusal("root-refused"), /root/);
      assert.match(await refusal("pod-not-root"), /root/);
      assert.match(await lab.output("not-root"), /^1234\n/);
    },
  );

  test("security_context.read_only_root_filesystem: only volumes can be written", LIMIT, async () => {
    assert.match(await lab.output("read-only"), /Read-only file system\nwritten\n$/);
  });

  test("security_context.privileged: all capabilities and devices, no filter", LIMIT, async () => {
    assert.equal(await has("privileged", SYS_ADMIN), true);
    assert.equal(await statusOf("privileged", "Seccomp"), "0");
    assert.match(await lab.output("privileged"), /devices\n$/);
    assert.equal(await has("plain", SYS_ADMIN), false);
  });

  test("security_context.allow_privilege_escalation: forbidden unless it is set", LIMIT, async () => {
    assert.equal(await statusOf("escalating", "NoNewPrivs"), "0");
    assert.equal(await statusOf("plain", "NoNewPrivs"), "1");
    assert.equal(
      await statusOf("bare", "NoNewPrivs"),
      "0",
      "without a security context nothing is forbidden",
    );
  });

  test("security_context.capabilities: add and drop, ALL among them", LIMIT, async () => {
    assert.equal(await has("plain", CHOWN), true);
    assert.equal(await has("capabilities", NET_ADMIN), true);
    assert.equal(await has("capabilities", CHOWN), false);
    assert.equal(await has("capabilities", NET_BIND_SERVICE), false);
    assert.equal(await has("dropped", CHOWN), false);
    assert.equal(await has("dropped", NET_BIND_SERVICE), true);
  });

  test(
    "security_context.seccomp_profile: RuntimeDefault, Unconfined or a profile of the host's",
    LIMIT,
    async () => {
      assert.equal(await statusOf("default", "Seccomp"), "2");
      assert.equal(await statusOf("plain", "Seccomp"), "2", "the default");
      assert.equal(await statusOf("unconfined", "Seccomp"), "0");
      assert.match(await lab.output("profile"), /not permitted\ntouched\n$/);
    },
  );

  test("security_context.se_linux_type: refused where the host has no SELinux", LIMIT, async () => {
    const decided = await lab.until("selinux", "runs or is refused", ({ status: it }) => {
      return it?.ready === true || (it?.message ?? "") !== "";
    });
    if (decided.status?.ready !== true) assert.match(decided.status?.message ?? "", /no SELinux/);
  });

  test(
    "pod security_context.run_as_user and run_as_group: apply to containers without their own",
    LIMIT,
    async () => {
      assert.equal(await lab.output("pod-user"), "1234\n2345\n2345\n");
      assert.match(await lab.output("own-user"), /^99\n2345\n/);
    },
  );

  test("pod security_context.seccomp_profile: applies to containers without their own", LIMIT, async () => {
    assert.equal(await statusOf("pod-seccomp", "Seccomp"), "0");
  });

  test("pod security_context.supplemental_groups: are groups of the process", LIMIT, async () => {
    const [, , groups = ""] = (await lab.output("groups")).split("\n");
    for (const group of ["3001", "3002"]) assert.ok(groups.split(" ").includes(group), groups);
  });

  test("pod security_context.fs_group: owns the volumes, and is a group of the process", LIMIT, async () => {
    const [uid, , groups = "", volume = "", file] = (await lab.output("fs-group")).split("\n");
    assert.equal(uid, "1234");
    assert.ok(groups.split(" ").includes("4001"), groups);
    assert.match(volume, /^4001 drwxrws/);
    assert.equal(file, "4001");
  });
});
