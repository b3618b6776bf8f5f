import assert from "node:assert/strict";
import { test } from "node:test";
import { PodAssignment, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { Container, PodConfig } from "@forage/proto/forest/v1/forage";
import { aHost } from "../../test/a-host.ts";
import { parseAssignment as parse } from "./parse-assignment.ts";

test("a container's words and variables come out as written: they are expanded at each start", () => {
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

test("a cpu limit alone is a request for as much; the smallest share is 2", () => {
  const limited = (cpu: string) => ({
    requests: undefined,
    limits: { cpu, memory: "", ephemeralStorage: "", extended: {} },
  });
  assert.equal(parseAssignment(aPod({ resources: limited("500m") })).containers[0]?.cpuShares, 512);
  assert.equal(parseAssignment(aPod({ resources: limited("1m") })).containers[0]?.cpuShares, 2);
});

test("the main container comes last, so that it stops first", () => {
  const side = Container.fromPartial({ name: "side", image: "side:1" });
  const pod = parseAssignment(aPod({}, { sidecars: [side] }));
  assert.deepEqual(
    pod.containers.map((it) => it.name),
    ["side", "main"],
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
  ["a pull policy that is none", { imagePullPolicy: "Sometimes" }, /pull policy/],
] as const) {
  test(`${what} is this pod's problem, and no exception`, () => {
    const pod = parseAssignment(aPod(Container.fromPartial(change as Partial<Container>)));
    assert.match(pod.problem ?? "", problem);
    assert.deepEqual(pod.containers, []);
    assert.equal(pod.uid, "u1");
  });
}

test("a pod with no template is a problem too", () => {
  assert.match(parseAssignment({ ...aPod({}), template: undefined }).problem ?? "", /no container/);
});

test("the host name is the pod's, cut to what the kernel takes", () => {
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

/** A message made of a few fields has the others' defaults, which must not hide those of the whole. */
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
