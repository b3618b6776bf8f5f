import assert from "node:assert/strict";
import { test } from "node:test";
import {
  PlanRequest,
  PodPolicy,
  PutObjectRequest,
  RunCronJobRequest,
  UpdateRolloutRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { type ServiceError, status } from "@grpc/grpc-js";
import { Fleet } from "./support/fleet.ts";
import { aContainerService, aJob, aRequest } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

/**
 * An attacker with an editor's token for one namespace tries to become root on hosts, and to reach
 * other namespaces.
 */

const LIMIT = { timeout: 120_000 };
const IMAGE = "registry.example/team/app:v1";
const MAIN = { name: "main", image: IMAGE };

function withContext(securityContext: object) {
  return { container: { ...MAIN, securityContext } };
}

function withVolume(source: object, mount: object = {}) {
  return {
    container: { ...MAIN, volumeMounts: [{ name: "v", mountPath: "/v", ...mount }] },
    volumes: [{ name: "v", source }],
  };
}

const hostPath = (path: string) => withVolume({ $case: "hostPath", value: { path } });

/** Settings that would make a pod root on its host, each with the field that is refused. */
const escapes: readonly (readonly [string, object, string])[] = [
  ["a privileged container", withContext({ privileged: true }), "container.security_context.privileged"],
  ["the host's network", { podConfig: { hostNetwork: true } }, "pod_config.host_network"],
  ["the host's root", hostPath("/"), "volumes[0].host_path.path"],
  ["a path of the host", hostPath("/var/lib/forage"), "volumes[0].host_path.path"],
  [
    "SYS_ADMIN",
    withContext({ capabilities: { add: ["SYS_ADMIN"] } }),
    "container.security_context.capabilities.add[0]",
  ],
  [
    "all capabilities",
    withContext({ capabilities: { add: ["ALL"] } }),
    "container.security_context.capabilities.add[0]",
  ],
  ["no seccomp", withContext({ seccompProfile: "Unconfined" }), "container.security_context.seccomp_profile"],
  [
    "a seccomp profile of its own",
    withContext({ seccompProfile: "/tmp/mine.json" }),
    "container.security_context.seccomp_profile",
  ],
  [
    "no seccomp for the pod",
    { podConfig: { securityContext: { seccompProfile: "Unconfined" } } },
    "pod_config.security_context.seccomp_profile",
  ],
  ["an SELinux type", withContext({ seLinuxType: "spc_t" }), "container.security_context.se_linux_type"],
  [
    "a priority above all others",
    { podConfig: { priorityClassName: "system-node-critical" } },
    "pod_config.priority_class_name",
  ],
];

test("refuses a pod of a namespace's editor that reaches its host", LIMIT, async (t) => {
  const world = await startWorld(t);
  const editor = await world.token("editor", ["shop"]);
  await known(world, editor);
  const forms: readonly (readonly [string, (spec: object) => ForageResource])[] = [
    ["container_service", (spec) => aContainerService("x", spec)],
    ["job", (spec) => aJob("x", spec)],
    ["cron_job", (spec) => aCronJob("x", spec)],
  ];
  for (const [kind, make] of forms)
    for (const [what, spec, path] of escapes) {
      const field = `resources[0].${kind}.${path}`;
      const request = aRequest(`${kind} ${what}`, [make(spec)]);
      const refusal = (error: ServiceError): boolean => {
        assert.equal(error.code, status.INVALID_ARGUMENT, `${kind}: ${what}: ${error.message}`);
        assert.ok(error.details.includes(`${field}: the policy of namespace "shop"`), error.details);
        assert.match(error.details, /leave it out/);
        return true;
      };
      await assert.rejects(world.forage(editor).applyResources(request), refusal, what);
      const plan = PlanRequest.fromPartial({ namespace: "shop", bundle: request });
      await assert.rejects(world.operator(editor).plan(plan), refusal, what);
    }
  assert.deepEqual((await world.operator().listResources({ namespace: "shop", labels: {} })).resources, []);
});

test("applies the same policy to sidecars and init containers", LIMIT, async (t) => {
  const world = await startWorld(t);
  const editor = await world.token("editor", ["shop"]);
  await known(world, editor);
  const bad = { ...MAIN, name: "second", securityContext: { privileged: true } };
  for (const [part, path] of [
    ["sidecars", "sidecars[0]"],
    ["initContainers", "init_containers[0]"],
  ] as const) {
    const call = world
      .forage(editor)
      .applyResources(aRequest(part, [aContainerService("x", { [part]: [bad] })]));
    await assert.rejects(call, {
      details: new RegExp(`${path.replace(/[[\]]/g, "\\$&")}.security_context.privileged`),
    });
  }
});

test(
  "applies the baseline to a namespaced admin, but not to a token for all namespaces",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const admin = await world.token("admin", ["shop", "other"]);
    await known(world, admin);
    const root = aContainerService("x", withContext({ privileged: true }));
    await assert.rejects(world.forage(admin).applyResources(aRequest("a1", [root])), {
      code: status.INVALID_ARGUMENT,
    });
    await world.forage().applyResources(aRequest("a2", [root]));
  },
);

test("allows host paths by prefix and role in a namespace's policy", LIMIT, async (t) => {
  const world = await startWorld(t);
  const [editor, admin] = [await world.token("editor", ["shop"]), await world.token("admin", ["shop"])];
  await known(world, editor, admin);
  const set = (policy: Parameters<typeof PodPolicy.fromPartial>[0]) =>
    world.operator().setNamespacePolicy({
      namespace: "shop",
      policy: PodPolicy.fromPartial({ profile: "baseline", ...policy }),
      remove: false,
    });
  let applies = 0;
  const tries = async (token: string, spec: object): Promise<string> => {
    const request = aRequest(`try-${++applies}`, [aContainerService("x", spec)]);
    return world
      .forage(token)
      .applyResources(request)
      .then(
        () => "allowed",
        (error: ServiceError) => error.details,
      );
  };
  await set({ role: "editor", hostPaths: ["/srv/data", "/etc/ssl:ro"], capabilities: ["NET_ADMIN"] });
  assert.equal(await tries(editor, hostPath("/srv/data")), "allowed");
  assert.equal(await tries(editor, hostPath("/srv/data/a/b")), "allowed");
  assert.match(await tries(editor, hostPath("/srv/database")), /volumes\[0\]\.host_path\.path/);
  assert.match(await tries(editor, hostPath("/srv")), /volumes\[0\]\.host_path\.path/);
  assert.match(await tries(editor, hostPath("/srv/data/../../etc")), /host_path\.path/);
  assert.match(
    await tries(editor, hostPath("/etc/ssl/certs")),
    /volume_mounts\[0\]\.read_only: must be true/,
  );
  const readOnly = withVolume({ $case: "hostPath", value: { path: "/etc/ssl/certs" } }, { readOnly: true });
  assert.equal(await tries(editor, readOnly), "allowed");
  assert.equal(await tries(editor, withContext({ capabilities: { add: ["NET_ADMIN"] } })), "allowed");
  assert.match(
    await tries(admin, hostPath("/srv/data")),
    /host_path\.path/,
    "another role has its own policy",
  );
  await set({ role: "", hostNetwork: true, hostPorts: ["8000-8099"] });
  const inHostNetwork = (containerPort: number) => ({
    container: { ...MAIN, ports: [{ name: "p", containerPort, protocol: "TCP" }] },
    podConfig: { hostNetwork: true },
  });
  assert.equal(await tries(admin, inHostNetwork(8080)), "allowed");
  assert.match(await tries(admin, inHostNetwork(22)), /ports\[0\]\.container_port: .*port 22 of the host/);
  await set({ role: "global", profile: "restricted" });
  const own = await world.token("editor");
  await known(world, own);
  assert.match(await tries(own, {}), /run_as_non_root: must be true.*capabilities\.drop: must hold "ALL"/s);
  const hardened = withContext({ runAsNonRoot: true, capabilities: { drop: ["ALL"] } });
  assert.equal(await tries(own, hardened), "allowed");
  const { namespaces } = await world.operator().listNamespaces({ namespace: "shop" });
  assert.deepEqual(
    namespaces[0]?.policies.map(({ role }) => role),
    ["", "editor", "global"],
  );
  await world.restart();
  assert.match(await tries(editor, hostPath("/srv")), /host_path\.path/, "policies survive a restart");
  assert.equal(await tries(editor, hostPath("/srv/data")), "allowed");
});

test("refuses an editor's sessions in pods that only the operator may create", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  const { world } = fleet;
  const editor = await world.token("editor", ["shop"]);
  await known(world, editor);
  await fleet.apply(
    aContainerService("root", { ...withContext({ privileged: true }), scaling: { replicas: 1 } }),
  );
  await world.forage().applyResources(aRequest("cron", [aCronJob("nightly", hostPath("/"))]));
  const [pod] = await fleet.pods("root");
  const target = { namespace: "shop", pod: pod?.name ?? "", container: "" };
  const exec = world.operator(editor).exec();
  exec.write({
    frame: {
      $case: "start",
      value: { ...target, options: { command: ["sh"], stdin: false, tty: false, size: undefined } },
    },
  } as never);
  const denied = {
    code: status.PERMISSION_DENIED,
    details: /more rights than pods that this token may create.*privileged/,
  };
  await assert.rejects(collected(exec), denied);
  const copy = world.operator(editor).copy();
  copy.write({
    frame: { $case: "start", value: { ...target, options: { path: "/x", upload: false } } },
  } as never);
  await assert.rejects(collected(copy), denied);
  const forward = world.operator(editor).portForward();
  forward.write({ frame: { $case: "start", value: { namespace: "shop", pod: target.pod, port: 80 } } });
  await assert.rejects(collected(forward), denied);
  const run = RunCronJobRequest.fromPartial({ namespace: "shop", cronJob: "nightly" });
  await assert.rejects(world.operator(editor).runCronJob(run), {
    code: status.INVALID_ARGUMENT,
    details: /job\.volumes\[0\]\.host_path\.path/,
  });
  await fleet.apply(aContainerService("root", { scaling: { replicas: 1 } }));
  const undo = UpdateRolloutRequest.fromPartial({
    namespace: "shop",
    kind: "container_service",
    name: "root",
    action: { $case: "undo", value: { toRevision: 1 } },
  });
  await assert.rejects(world.operator(editor).updateRollout(undo), {
    code: status.INVALID_ARGUMENT,
    details: /container_service\.container\.security_context\.privileged/,
  });
});

test(
  "gives an editor no access to objects of another namespace and settings of its own",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const editor = await world.token("editor", ["shop"]);
    await known(world, editor);
    const operator = world.operator(editor);
    const secret = { name: "db", spec: { $case: "secret", value: { data: { a: Buffer.from("b") } } } };
    const put = (namespace: string, inner: string) =>
      operator.putObject(
        PutObjectRequest.fromPartial({ namespace, object: { ...secret, namespace: inner } } as object),
      );
    const id = { namespace: "other", kind: "secret", name: "db" };
    const policy = PodPolicy.fromPartial({ profile: "privileged" });
    const denied = [
      put("other", "other"),
      operator.getObject(id),
      operator.revealObject(id),
      operator.deleteObject(id),
      operator.listObjects({ namespace: "", kind: "", labels: {} }),
      operator.listNamespaces({ namespace: "" }),
      operator.listNamespaces({ namespace: "other" }),
      operator.setNamespacePolicy({ namespace: "shop", policy, remove: false }),
      operator.setNamespaceQuota({ namespace: "shop", limits: { pods: "100000" }, reset: false }),
      operator.listApiTokens({}),
      operator.revokeApiToken({ id: "0".repeat(12) }),
      operator.createApiToken({
        role: "admin",
        namespaces: ["shop"],
        ttlSeconds: 0n,
        description: "",
        neverExpires: false,
      }),
    ];
    for (const call of denied) await assert.rejects(call, { code: status.PERMISSION_DENIED });
    await assert.rejects(put("shop", "other"), { code: status.INVALID_ARGUMENT });
  },
);

function aCronJob(name: string, spec: object): ForageResource {
  const value = { schedule: "@yearly", container: MAIN, ...spec };
  return ForageResource.fromPartial({ name, spec: { $case: "cronJob", value } } as object);
}

async function known(world: World, ...tokens: readonly string[]): Promise<void> {
  for (const token of tokens)
    await until("the token is known", () =>
      world
        .operator(token)
        .listResources({ namespace: "shop", labels: {} })
        .then(
          () => true,
          () => false,
        ),
    );
}
