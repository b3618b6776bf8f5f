import assert from "node:assert/strict";
import { test } from "node:test";
import { PodAssignment, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { Container, PodConfig, Probe } from "@forage/proto/forest/v1/forage";
import { aHost } from "../../test/a-host.ts";
import type { PodContainer } from "../pods/pod.ts";
import { parseAssignment as parse } from "./parse-assignment.ts";

test("keeps a container's words and variables as written, because they are expanded at each start", () => {
  const pod = parseAssignment(
    aPod({
      command: ["run", "$(WHO)"],
      args: ["$(MISSING)", "$$(WHO)"],
      workingDir: "/srv",
      env: [value("WHO", "anna"), value("GREETING", "hello $(WHO)")],
      ports: [
        { name: "http", containerPort: 80, protocol: "" },
        { name: "dns", containerPort: 53, protocol: "UDP" },
      ],
      resources: {
        requests: { cpu: "250m", memory: "64Mi", ephemeralStorage: "", extended: {} },
        limits: { cpu: "1", memory: "128Mi", ephemeralStorage: "", extended: {} },
      },
    }),
  );
  assert.equal(pod.problem, undefined);
  assert.deepEqual(pod.containers, [
    {
      name: "main",
      image: "app:1",
      pullPolicy: "IfNotPresent",
      command: ["run", "$(WHO)"],
      args: ["$(MISSING)", "$$(WHO)"],
      env: [
        { name: "WHO", value: "anna" },
        { name: "GREETING", value: "hello $(WHO)" },
      ],
      workingDir: "/srv",
      ports: [
        { container: "main", containerPort: 80, protocol: "TCP" },
        { container: "main", containerPort: 53, protocol: "UDP" },
      ],
      cpuLimitMilli: 1_000,
      memoryLimitBytes: 128 * 2 ** 20,
      cpuShares: 256,
      resources: {
        "requests.cpu": "250m",
        "requests.memory": "64Mi",
        "limits.cpu": "1",
        "limits.memory": "128Mi",
      },
    },
  ]);
});

test("a cpu limit without a request is also the request, and the smallest share is 2", () => {
  const limited = (cpu: string) => ({
    requests: undefined,
    limits: { cpu, memory: "", ephemeralStorage: "", extended: {} },
  });
  assert.equal(parseAssignment(aPod({ resources: limited("500m") })).containers[0]?.cpuShares, 512);
  assert.equal(parseAssignment(aPod({ resources: limited("1m") })).containers[0]?.cpuShares, 2);
});

test("the main container is last, so that it stops first", () => {
  const side = Container.fromPartial({ name: "side", image: "side:1" });
  const pod = parseAssignment(aPod({}, { sidecars: [side] }));
  assert.deepEqual(
    pod.containers.map((it) => it.name),
    ["side", "main"],
  );
});

test("parses init containers, labels, annotations, objects and the rest of the pod", () => {
  const init = Container.fromPartial({ name: "setup", image: "setup:1" });
  const podConfig = PodConfig.fromPartial({
    labels: { app: "old", tier: "front" },
    annotations: { note: "x" },
    securityContext: { fsGroup: 7n, fsGroupChangePolicy: "OnRootMismatch" },
  });
  const secret = { name: "db", version: "v1", current: true, data: { a: Buffer.from("1") } };
  const credential = { name: "hub", server: "docker.io", username: "u", password: "p" };
  const pod = parseAssignment({
    ...aPod({}, { initContainers: [init], podConfig, objectVersions: { "secret/db": "v1" } }),
    labels: { app: "web" },
    secrets: [secret],
    registryCredentials: [credential],
  });
  assert.equal(pod.problem, undefined);
  assert.deepEqual(
    pod.initContainers?.map((it) => it.name),
    ["setup"],
  );
  assert.deepEqual(pod.labels, { app: "web", tier: "front" });
  assert.deepEqual(pod.annotations, { note: "x" });
  assert.deepEqual(pod.volumes, {
    uid: "u1",
    volumes: [],
    fsGroup: { gid: 7, changePolicy: "OnRootMismatch" },
  });
  assert.deepEqual(pod.objects, {
    secrets: [{ name: "db", version: "v1", current: true, data: new Map([["a", Buffer.from("1")]]) }],
    configMaps: [],
    envVersions: { "secret/db": "v1" },
    registryCredentials: [{ server: "docker.io", username: "u", password: "p" }],
  });
  assert.equal(pod.serviceAccount, undefined);
});

const PARTS: readonly (readonly [
  what: string,
  given: Parameters<typeof Container.fromPartial>[0],
  gives: Partial<PodContainer>,
])[] = [
  ["stdin and a terminal", { stdin: true, tty: true }, { stdin: true, tty: true }],
  [
    "a limit on its own layer, and units of devices",
    {
      resources: { limits: { ephemeralStorage: "1Gi", extended: { "example.com/gpu": "2" } } },
    },
    {
      rootLimitBytes: 2 ** 30,
      extended: { "example.com/gpu": 2 },
      resources: { "requests.ephemeral-storage": "1Gi", "limits.ephemeral-storage": "1Gi" },
    },
  ],
  [
    "limits of nothing",
    { resources: { limits: { memory: "0", extended: { "a.b/c": "0" } } } },
    {
      resources: { "requests.memory": "0", "limits.memory": "0" },
    },
  ],
  [
    "env from everywhere",
    {
      env: [
        { name: "A" },
        { name: "B", valueSource: { $case: "secretRef", value: { secretName: "s", key: "k" } } },
        { name: "C", valueSource: { $case: "configRef", value: { configName: "c", key: "k" } } },
        { name: "D", valueSource: { $case: "fieldRef", value: "status.podIP" } },
        { name: "E", valueSource: { $case: "resourceFieldRef", value: "limits.cpu" } },
      ],
    },
    {
      env: [
        { name: "A", value: "" },
        { name: "B", secret: "s", key: "k" },
        { name: "C", config: "c", key: "k" },
        { name: "D", field: "status.podIP" },
        { name: "E", resourceField: "limits.cpu" },
      ],
    },
  ],
  [
    "ports of each protocol",
    { ports: ["TCP", "UDP", "SCTP"].map((protocol) => ({ containerPort: 7, protocol })) },
    {
      ports: (["TCP", "UDP", "SCTP"] as const).map((protocol) => ({
        container: "main",
        containerPort: 7,
        protocol,
      })),
    },
  ],
];

for (const [what, given, gives] of PARTS) {
  test(`a container with ${what}`, () => {
    const pod = parseAssignment(aPod(Container.fromPartial(given)));
    assert.equal(pod.problem, undefined);
    const plain = { name: "main", image: "app:1", pullPolicy: "IfNotPresent", command: [], args: [] };
    assert.deepEqual(pod.containers, [{ ...plain, env: [], ports: [], ...gives }]);
  });
}

test("parses by the host's features: runtime class, SCTP, and the host name on the host's network", () => {
  const assignment = (config: Parameters<typeof PodConfig.fromPartial>[0], change: Partial<Container> = {}) =>
    aPod(change, { podConfig: PodConfig.fromPartial(config) });
  const classy = assignment({ runtimeClassName: "kata" });
  const runtimeClasses = { kata: "io.containerd.kata.v2" };
  assert.equal(parse(classy, aHost({ runtimeClasses })).containers[0]?.ociRuntime, "io.containerd.kata.v2");
  assert.match(parse(classy, aHost()).problem ?? "", /container main: this host has no runtime class "kata"/);
  assert.match(
    parse(assignment({ runtimeClassName: "toString" }), aHost()).problem ?? "",
    /no runtime class/,
  );

  const signals = assignment({}, { ports: [{ name: "", containerPort: 7, protocol: "SCTP" }] });
  assert.match(
    parse(signals, aHost({ sctp: false })).problem ?? "",
    /port 7: this host's kernel has no SCTP/,
  );

  const onHost = parse(assignment({ hostNetwork: true }), aHost({ hostname: "big-iron" }));
  assert.deepEqual([onHost.hostname, onHost.network?.hostNetwork], ["big-iron", true]);
});

test("a service account's token is mounted in every container", () => {
  const podConfig = PodConfig.fromPartial({ serviceAccountName: "builder" });
  const identityToken = { token: "t", expiresAt: undefined };
  const pod = parseAssignment({ ...aPod({}, { podConfig }), identityToken });
  assert.equal(pod.serviceAccount, "builder");
  assert.deepEqual(
    pod.containers[0]?.mounts?.map((it) => it.volume),
    ["forage-identity"],
  );
  assert.deepEqual(
    pod.volumes?.volumes.map((it) => it.name),
    ["forage-identity"],
  );
});

test("grace period and restart policy have Kubernetes' defaults", () => {
  assert.equal(parseAssignment(aPod({})).graceMs, 30_000);
  assert.equal(parseAssignment(aPod({})).restartPolicy, "Always");
  const podConfig = PodConfig.fromPartial({ terminationGracePeriodSeconds: 5, restartPolicy: "OnFailure" });
  const pod = parseAssignment(aPod({}, { podConfig }));
  assert.deepEqual([pod.graceMs, pod.restartPolicy], [5_000, "OnFailure"]);
});

for (const [what, change, problem] of [
  ["a name that is a path", { name: "../x" }, /can't be a container's name/],
  ["a name that is an option", { name: "--privileged" }, /can't be a container's name/],
  [
    "a quantity that is none",
    {
      resources: {
        requests: { cpu: "lots", memory: "", ephemeralStorage: "", extended: {} },
        limits: undefined,
      },
    },
    /quantity/,
  ],
  [
    "a port beyond all ports",
    { ports: [{ containerPort: 70_000, protocol: "" }] },
    /main: 70000 is not a port/,
  ],
  ["a protocol that is none", { ports: [{ containerPort: 7, protocol: "ICMP" }] }, /"ICMP" is not a/],
  [
    "a field that pods don't have",
    { env: [{ name: "A", valueSource: { $case: "fieldRef", value: "spec.x" } }] },
    /env A: "spec.x" is not a field/,
  ],
  [
    "a resource that containers don't have",
    { env: [{ name: "A", valueSource: { $case: "resourceFieldRef", value: "limits.gpu" } }] },
    /env A: "limits.gpu" is not a resource/,
  ],
  [
    "more devices than its limit",
    { resources: { requests: { extended: { "a.b/c": "2" } }, limits: { extended: { "a.b/c": "1" } } } },
    /a\.b\/c and its limit must be equal/,
  ],
  ["a mount of nothing", { volumeMounts: [{ name: "v", mountPath: "/v" }] }, /no volume "v"/],
  ["a pull policy that is none", { imagePullPolicy: "Sometimes" }, /pull policy/],
] as const) {
  test(`${what} is the pod's problem, not an exception`, () => {
    const pod = parseAssignment(aPod(Container.fromPartial(change as unknown as Partial<Container>)));
    assert.match(pod.problem ?? "", problem);
    assert.deepEqual(pod.containers, []);
    assert.equal(pod.uid, "u1");
  });
}

for (const [what, change] of [
  ["probes", { livenessProbe: Probe.fromPartial({ handler: { $case: "tcpSocket", value: { port: 80 } } }) }],
  [
    "hooks",
    { lifecycle: { postStart: { action: { $case: "tcpSocket", value: { port: 80 } } }, preStop: undefined } },
  ],
] as const) {
  test(`an init container can't have ${what}`, () => {
    const seed = Container.fromPartial({ name: "seed", image: "app:1", ...change });
    const { problem } = parseAssignment(aPod({}, { initContainers: [seed] }));
    assert.equal(problem, `init container seed: it can't have ${what}`);
  });
}

test("a pod without a template has a problem", () => {
  assert.match(parseAssignment({ ...aPod({}), template: undefined }).problem ?? "", /no container/);
});

test("the host name is the pod's name, truncated to the kernel's limit", () => {
  const long = { ...aPod({}), name: `${"a".repeat(62)}-${"b".repeat(20)}` };
  assert.equal(parseAssignment(long).hostname, "a".repeat(62));
});

function parseAssignment(assignment: PodAssignment): ReturnType<typeof parse> {
  return parse(assignment, aHost());
}

function aPod(change: Partial<Container>, template: Partial<PodTemplate> = {}): PodAssignment {
  const container = { ...Container.fromPartial({ name: "main", image: "app:1" }), ...stripEmpty(change) };
  return PodAssignment.fromPartial({
    uid: "u1",
    namespace: "default",
    name: "pod-1",
    specHash: "h",
    template: PodTemplate.fromPartial({ container, ...template }),
  });
}

/** A message with a few fields has defaults in the others, which must not override those of the whole. */
function stripEmpty(change: Partial<Container>): Partial<Container> {
  return Object.fromEntries(
    Object.entries(change).filter(
      ([, it]) => it !== "" && it !== undefined && it !== false && !(Array.isArray(it) && it.length === 0),
    ),
  );
}

function value(name: string, text: string): Container["env"][number] {
  return { name, valueSource: { $case: "value", value: text } };
}
