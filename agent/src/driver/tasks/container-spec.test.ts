import assert from "node:assert/strict";
import { test } from "node:test";
import {
  NetworkIsolationSpec_NetworkIsolationMode as Mode,
  TaskConfig,
} from "@forage/proto/plugins/drivers/proto/driver";
import { taskOptions } from "../../../test/driver/driver-options.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";
import { containerSpec } from "./container-spec.ts";
import { taskNetwork } from "./task-network.ts";

const PLACE = {
  ...{ name: "n", image: "i", hostname: "h", networkNamespace: "host", labels: {}, files: [], mounts: [] },
  ...{ consoleFile: "/run/console", cores: 2 },
};
const spec = (options: Partial<TaskOptions> = {}, task: Parameters<typeof TaskConfig.fromPartial>[0] = {}) =>
  containerSpec(TaskConfig.fromPartial(task), taskOptions({ image: "i", ...options }), PLACE);

test("the command replaces the image's CMD, and the entry point its ENTRYPOINT", () => {
  assert.deepEqual(
    [spec({ command: "a", args: ["b"] }).command, spec({ command: "a", args: ["b"] }).args],
    [[], ["a", "b"]],
  );
  const both = spec({ entrypoint: ["e", "f"], args: ["b"] });
  assert.deepEqual([both.command, both.args], [["e", "f"], ["b"]]);
});

test("output goes to Nomad's pipes, or is dropped if there are none", () => {
  assert.deepEqual(spec({}, { stdoutPath: "/o", stderrPath: "" }).streamPipes, {
    stdout: "/o",
    stderr: "/dev/null",
  });
});

test("binds the task's directories and mounts, parents first and each target once", () => {
  const task = {
    ...{ allocDir: "/a", name: "web", env: { NOMAD_TASK_DIR: "/elsewhere" } },
    mounts: [{ hostPath: "/h", taskPath: "alloc/x", readonly: true, propagationMode: "bidirectional" }],
  };
  assert.deepEqual(
    spec({}, task).binds.map(({ source, target, propagation }) => [source, target, propagation]),
    [
      ["/a/alloc", "/alloc", undefined],
      ["/h", "/alloc/x", "rshared"],
      ["/a/web/local", "/elsewhere", undefined],
      ["/a/web/secrets", "/secrets", undefined],
    ],
  );
  const twice = {
    ...task,
    mounts: [{ hostPath: "/h", taskPath: "/secrets", readonly: true, propagationMode: "" }],
  };
  assert.throws(() => spec({}, twice), DriverError);
  const odd = {
    ...task,
    mounts: [{ hostPath: "/h", taskPath: "/x", readonly: true, propagationMode: "odd" }],
  };
  assert.throws(() => spec({}, odd), /propagation/);
});

test("passes profiles, namespaces and memory settings to the container", () => {
  const { security, tuning } = spec({
    ...{ appArmorProfile: "web", seLinuxType: "spc_t", hostNamespaces: ["pid"], cgroupNamespace: "host" },
    ...{ memoryReservationBytes: 4096, memorySwappiness: 3 },
  });
  assert.deepEqual([security?.appArmorProfile, security?.seLinuxType], ["web", "spc_t"]);
  assert.deepEqual([tuning?.hostNamespaces, tuning?.cgroupNamespace], [["pid"], "host"]);
  assert.deepEqual([tuning?.memorySoftLimitBytes, tuning?.memorySwappiness], [4096, 3]);
});

test("rejects network sysctls on the host's network", () => {
  assert.throws(() => spec({ sysctl: { "net.core.somaxconn": "1" } }), DriverError);
});

const network = (options: Partial<TaskOptions>, task: Parameters<typeof TaskConfig.fromPartial>[0]) =>
  taskNetwork(TaskConfig.fromPartial(task), taskOptions({ image: "i", ...options }));

for (const [what, options, isolation, expected] of [
  ["nothing: the host's", {}, undefined, "host"],
  [
    "Nomad's namespace before the job's mode",
    { networkMode: "bridge" },
    { mode: Mode.GROUP, path: "/ns" },
    "/ns",
  ],
  ["none of Nomad's", {}, { mode: Mode.NONE }, "none"],
  ["none of the job's", { networkMode: "none" }, { mode: Mode.HOST }, "none"],
  ["a driver's network without a mode", {}, { mode: Mode.TASK }, "own"],
] as const)
  test(`network: ${what}`, () => {
    const found = network(options, { networkIsolationSpec: isolation });
    assert.equal(found.type === "own" ? "own" : found.path, expected);
  });

test("finds ports by label in the group's and in the task's network", () => {
  const resources = {
    ports: [{ label: "http", value: 25_000, to: 80 }],
    allocatedResources: { networks: [{ dynamicPorts: [{ label: "rpc", value: 25_001 }] }] },
  };
  const found = network({ networkMode: "bridge", ports: ["http", "rpc"] }, { resources });
  assert.ok(found.type === "own");
  assert.deepEqual(found.portMap, { http: 80, rpc: 25_001 });
  assert.deepEqual(found.ports[0], {
    container: "http",
    containerPort: 80,
    protocol: "TCP",
    hostPort: 25_000,
  });
  assert.equal(found.ports.length, 4);
  assert.throws(() => network({ networkMode: "bridge", ports: ["x"] }, { resources }), /"x"/);
});

test("publishes a port at the address that Nomad names, or else at all addresses", () => {
  const publish = (hostIp: string) => {
    const resources = { ports: [{ label: "http", value: 25_000, to: 80, hostIp }] };
    const found = network({ networkMode: "bridge", ports: ["http"] }, { resources });
    return found.type === "own" ? found.ports.map((it) => it.hostIp) : undefined;
  };
  assert.deepEqual(publish("192.0.2.1"), ["192.0.2.1", "192.0.2.1"]);
  for (const any of ["", "0.0.0.0", "::"]) assert.deepEqual(publish(any), [undefined, undefined]);
  assert.throws(() => publish("fd00::1"), /port "http": host_ip "fd00::1" is not an IPv4 address/);
});
