import assert from "node:assert/strict";
import { createPublicKey, type JsonWebKeyInput, verify } from "node:crypto";
import { test } from "node:test";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { Object as ObjectMessage, PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { type ServiceError, status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const CANARY = "hunter2-canary";

test(
  "delivers a secret to the pods that name it, rolls them after a change, and restores the old version with an undo",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world);
    await putSecret(world, "db", { password: "one" });
    await apply(world, "a1", withSecretEnv());
    const [first] = assigned(agent);
    assert.equal(valueIn(first, "password"), "one");
    assert.equal(first?.secrets[0]?.current, true);
    const firstVersion = first?.template?.objectVersions["secret/db"];
    assert.equal(first?.secrets[0]?.version, firstVersion);

    await putSecret(world, "db", { password: "two" });
    await until("all pods are new", () => {
      const pods = assigned(agent);
      return (
        pods.length === 2 &&
        pods.every((pod) => valueIn(pod, "password") === "two" && pod.specHash !== first?.specHash)
      );
    });
    await settledService(world);

    await putSecret(world, "db", { password: "one" });
    await until("all pods are as they were at first", () => {
      const pods = assigned(agent);
      return pods.length === 2 && pods.every((pod) => pod.specHash === first?.specHash);
    });
    assert.equal(assigned(agent)[0]?.template?.objectVersions["secret/db"], firstVersion);
  },
);

test("keeps the version with which a pod was created if it is replaced last", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await putSecret(world, "db", { password: "one" });
  await apply(world, "a1", withSecretEnv());
  // New pods never become ready, so the old ones stay.
  agent.behaviour = () => undefined;
  const old = assigned(agent).map(({ uid }) => uid);
  for (let i = 0; i < 15; i++) await putSecret(world, "db", { password: `later ${i}` });
  await until("a new pod is there with the last version", () =>
    assigned(agent).some((pod) => !old.includes(pod.uid) && valueIn(pod, "password") === "later 14"),
  );
  const kept = assigned(agent).filter(({ uid }) => old.includes(uid));
  assert.ok(kept.length > 0);
  // The agent starts again and receives everything again.
  const again = agent.again();
  await until("it has the old pods", () => kept.every(({ uid }) => again.assignments.has(uid)));
  for (const { uid } of kept) assert.equal(valueIn(again.assignments.get(uid), "password"), "one");
  const { records } = await world.store.range("object-versions/shop/secret/db/");
  assert.equal(records.length, 11, "ten versions and the one that pods are pinned to");
});

test(
  "lets pods wait for a missing object, delivers it when it is created, and does not replace them",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world);
    await world.forage().applyResources(aRequest("a1", [withSecretEnv()]));
    await until("two pods are assigned", () => assigned(agent).length === 2);
    const uids = assigned(agent).map(({ uid }) => uid);
    assert.deepEqual(assigned(agent)[0]?.secrets, []);
    await putSecret(world, "db", { password: "one" });
    await until("they have it", () => assigned(agent).every((pod) => valueIn(pod, "password") === "one"));
    await settledService(world);
    assert.deepEqual(
      assigned(agent)
        .map(({ uid }) => uid)
        .sort(),
      uids.sort(),
    );
    await putSecret(world, "db", { password: "two" });
    await until("a change replaces them all", () => assigned(agent).every(({ uid }) => !uids.includes(uid)));
  },
);

test("keeps pods with volumes and the annotation, and delivers the change to them", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await putSecret(world, "db", { password: "one" });
  const volumes = [{ name: "v", source: { $case: "secret", value: { secretName: "db" } } }];
  const annotations = { "forage.dev/restart-on-change": "false" };
  const podConfig = { annotations };
  await apply(world, "a1", aContainerService("files", { volumes }), withSecretEnv("calm", { podConfig }));
  const uids = assigned(agent).map(({ uid }) => uid);
  assert.equal(uids.length, 4);
  await putSecret(world, "db", { password: "two" });
  await until("all pods have the new value", () =>
    assigned(agent).every((pod) => valueIn(pod, "password") === "two"),
  );
  assert.deepEqual(
    assigned(agent)
      .map(({ uid }) => uid)
      .sort(),
    uids.sort(),
  );
});

test(
  "returns values on demand only to permitted callers, and stores none in plain text",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    await putSecret(world, "db", { password: CANARY });
    const ref = { namespace: "shop", kind: "secret", name: "db" };
    const viewer = world.operator(await world.token("viewer"));
    const { object } = await viewer.getObject(ref);
    assert.deepEqual(object?.spec, {
      $case: "secret",
      value: { data: {}, sizes: { password: CANARY.length } },
    });
    await assert.rejects(viewer.revealObject(ref), { code: status.PERMISSION_DENIED });
    await assert.rejects(viewer.putObject(putRequest("x", secretSpec({}))), {
      code: status.PERMISSION_DENIED,
    });
    const other = world.operator(await world.token("editor", ["other"]));
    await assert.rejects(other.revealObject(ref), { code: status.PERMISSION_DENIED });
    const revealed = await world.operator(await world.token("editor", ["shop"])).revealObject(ref);
    assert.equal(
      revealed.object?.spec?.$case === "secret" && String(revealed.object.spec.value.data.password),
      CANARY,
    );

    await put(
      world,
      putRequest("hub", {
        $case: "registryCredential",
        value: { server: "docker.io", username: "u", password: CANARY },
      }),
    );
    const { objects } = await world.operator().listObjects({ namespace: "shop", kind: "", labels: {} });
    assert.equal(objects.length, 2);
    assert.doesNotMatch(
      JSON.stringify(objects.map((it) => ObjectMessage.toJSON(it))),
      new RegExp(`${CANARY}|${Buffer.from(CANARY).toString("base64")}`),
    );
    const { records } = await world.store.range("");
    for (const { key, value } of records) assert.equal(Buffer.from(value).includes(CANARY), false, key);
  },
);

test("stores an object as a whole, once, and only if it is valid", LIMIT, async (t) => {
  const world = await startWorld(t);
  const operator = world.operator();
  const request = putRequest("app", configMapSpec({ "a.conf": "x" }));
  assert.equal((await operator.putObject(request)).action, "created");
  assert.equal((await operator.putObject(request)).action, "unchanged");
  await assert.rejects(operator.putObject({ ...request, createOnly: true }), { code: status.ALREADY_EXISTS });
  assert.equal((await operator.putObject(putRequest("app", configMapSpec({ b: "y" })))).action, "changed");
  const { object } = await operator.getObject({ namespace: "shop", kind: "config_map", name: "app" });
  assert.equal(object?.spec?.$case === "configMap" && String(object.spec.value.data.b), "y");
  assert.equal(object?.generation, 2n);
  await operator.deleteObject({ namespace: "shop", kind: "config_map", name: "app" });
  await until(
    "its versions are gone",
    async () => (await world.store.range("object-versions/")).records.length === 0,
  );
  await assert.rejects(operator.getObject({ namespace: "shop", kind: "config_map", name: "app" }), {
    code: status.NOT_FOUND,
  });
});

for (const [what, request, problem] of [
  ["a name that is none", putRequest("A b", configMapSpec({})), /object\.name: must be lower-case/],
  [
    "a key that is none",
    putRequest("app", configMapSpec({ "a/b": "" })),
    /object\.config_map\.data\[a\/b\]: the key must be/,
  ],
  [
    "too many keys",
    putRequest("app", secretSpec(manyKeys(1_001))),
    /object\.secret\.data: must have at most 1000 keys/,
  ],
  [
    "too much",
    putRequest("app", secretSpec({ a: CANARY.repeat(100_000) })),
    /object\.secret\.data: must not be longer than 1048576/,
  ],
  [
    "no registry",
    putRequest("r", {
      $case: "registryCredential",
      value: { server: "http://x/", username: "", password: "" },
    }),
    /registry_credential\.server: .*username: must not be empty.*password: must not be empty/,
  ],
  [
    "no amount",
    putRequest("c", { $case: "claim", value: { capacity: "lots" } }),
    /object\.claim\.capacity: "lots" is not a quantity/,
  ],
  [
    "a class above the built-in ones",
    putRequest("p", { $case: "priorityClass", value: { value: 1_000_000_001 } }, ""),
    /object\.priority_class\.value: must be at most/,
  ],
  [
    "a class of a namespace",
    putRequest("p", { $case: "priorityClass", value: { value: 1 } }),
    /namespace: must be empty/,
  ],
  [
    "a class with a built-in one's name",
    putRequest("system-x", { $case: "priorityClass", value: { value: 1 } }, ""),
    /names that begin with system- are reserved/,
  ],
  [
    "nothing",
    PutObjectRequest.fromPartial({ namespace: "shop", object: { namespace: "shop", name: "x" } }),
    /object: must have one of secret/,
  ],
] as const) {
  test(`refuses ${what} by its path, without its value`, LIMIT, async (t) => {
    const world = await startWorld(t);
    await assert.rejects(world.operator().putObject(request), (error: ServiceError) => {
      assert.equal(error.code, status.INVALID_ARGUMENT);
      assert.match(error.details, problem);
      assert.doesNotMatch(error.details, new RegExp(CANARY));
      return true;
    });
  });
}

test("refuses to delete objects to which resources refer", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  await putSecret(world, "db", { password: "one" });
  await apply(world, "a1", withSecretEnv());
  const ref = { namespace: "shop", kind: "secret", name: "db" };
  await assert.rejects(world.operator().deleteObject(ref), {
    code: status.FAILED_PRECONDITION,
    details: /in use by shop\/container_service\/web; nothing was deleted/,
  });
  await world.operator().delete({ namespace: "shop", resources: [], labels: {}, all: true });
  assert.deepEqual(await world.operator().deleteObject(ref), { pending: false });
});

test("gives a pod with a service account a token that the published keys verify", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await apply(
    world,
    "a1",
    aContainerService("web", { podConfig: { serviceAccountName: "robot" } }),
    aContainerService("plain"),
  );
  const pod = assigned(agent).find(({ workloadName }) => workloadName === "web");
  assert.equal(
    assigned(agent).find(({ workloadName }) => workloadName === "plain")?.identityToken,
    undefined,
  );
  const { host, port } = world.coordinator.http;
  const { keys } = (await (await fetch(`http://${host}:${port}/.well-known/jwks.json`)).json()) as {
    keys: (JsonWebKeyInput["key"] & { kid: string })[];
  };
  const [header = "", claims = "", signature = ""] = (pod?.identityToken?.token ?? "").split(".");
  const { kid, alg } = decoded(header);
  const key = keys.find((it) => it.kid === kid);
  assert.ok(key);
  assert.equal(alg, "ES256");
  const isGood = (text: string): boolean =>
    verify(
      "sha256",
      Buffer.from(text),
      { key: createPublicKey({ key, format: "jwk" }), dsaEncoding: "ieee-p1363" },
      Buffer.from(signature, "base64url"),
    );
  assert.ok(isGood(`${header}.${claims}`));
  assert.equal(isGood(`${header}.${claims}x`), false);
  const { sub, iss, aud, exp, iat, "forage.dev": about } = decoded(claims);
  assert.equal(sub, "system:serviceaccount:shop:robot");
  assert.deepEqual([iss, aud], ["test-cluster", ["test-cluster"]]);
  assert.equal(Number(exp) - Number(iat), 3_600);
  assert.deepEqual(about, {
    namespace: "shop",
    serviceaccount: { name: "robot" },
    pod: { name: pod?.name, uid: pod?.uid },
    node: { name: "n1" },
  });
});

test("replaces tokens on connected nodes before they expire", LIMIT, async (t) => {
  const world = await startWorld(t, {}, { heartbeatIntervalSeconds: 3_600 });
  const agent = await HollowAgent.start(world);
  await apply(world, "a1", aContainerService("web", { podConfig: { serviceAccountName: "robot" } }));
  const old = assigned(agent).map(({ uid, identityToken }) => [uid, identityToken?.token]);
  assert.equal(agent.identityTokens.length, 0);
  world.clock.skip(49 * 60_000);
  await until("both are replaced", () => {
    const renewed = Object.assign({}, ...agent.identityTokens) as Record<string, { token: string }>;
    return old.every(([uid, token]) => (renewed[uid ?? ""]?.token ?? token) !== token);
  });
});

function decoded(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
}

function assigned(agent: HollowAgent): PodAssignment[] {
  return [...agent.assignments.values()].filter(({ stopping }) => !stopping);
}

function valueIn(pod: PodAssignment | undefined, key: string): string | undefined {
  return pod?.secrets[0]?.data[key]?.toString();
}

function withSecretEnv(name = "web", overrides: object = {}) {
  const valueSource = { $case: "secretRef", value: { secretName: "db", key: "password" } };
  const container = { name: "main", image: "app:v1", env: [{ name: "PASSWORD", valueSource }] };
  return aContainerService(name, { container, ...overrides });
}

async function apply(
  world: World,
  applyId: string,
  ...resources: Parameters<typeof aRequest>[1]
): Promise<void> {
  await watchToEnd(world, (await world.forage().applyResources(aRequest(applyId, resources))).rolloutId);
}

async function settledService(world: World): Promise<void> {
  await until("the service is whole", async () => {
    const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
    const { pods } = await world
      .operator()
      .listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" });
    return (
      resources.every((it) => it.readyReplicas === it.replicas && it.updatedReplicas === it.replicas) &&
      pods.length === 2
    );
  });
}

async function putSecret(world: World, name: string, data: Readonly<Record<string, string>>): Promise<void> {
  await put(world, putRequest(name, secretSpec(data)));
}

async function put(world: World, request: PutObjectRequest): Promise<void> {
  await world.operator().putObject(request);
}

function putRequest(name: string, spec: object, namespace = "shop"): PutObjectRequest {
  return PutObjectRequest.fromPartial({ namespace, object: { namespace, name, spec } } as object);
}

function secretSpec(data: Readonly<Record<string, string>>): object {
  return { $case: "secret", value: { data: buffers(data) } };
}

function configMapSpec(data: Readonly<Record<string, string>>): object {
  return { $case: "configMap", value: { data: buffers(data) } };
}

function buffers(data: Readonly<Record<string, string>>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text)]));
}

function manyKeys(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, ""]));
}
