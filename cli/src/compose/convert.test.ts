import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseSource } from "../manifest/document.ts";
import { cpuQuantity, memoryQuantity, wholeSeconds } from "./amounts.ts";
import { type Converted, convertCompose, isCompose } from "./convert.ts";
import { interpolate } from "./interpolate.ts";
import { SERVICE_FIELDS } from "./service-fields.ts";
import { splitWords } from "./split-words.ts";

function converted(text: string, env: Record<string, string> = {}): Converted {
  const [document] = parseSource({ name: "compose.yaml", text }).documents;
  assert.ok(document !== undefined && isCompose(document), text);
  return convertCompose(document, env);
}

/** Returns the resource of a service with one further field. */
function ofField(yaml: string): Converted {
  return converted(`services: {web: {image: app, ${yaml}}}`, { HERE: "there" });
}

type Expected =
  | { readonly carried: readonly (readonly [path: string, value: unknown])[] }
  | { readonly lost: true }
  | { readonly ignored: true };

const lost: Expected = { lost: true };
const ignored: Expected = { ignored: true };
const carried = (
  path: string,
  value: unknown,
  ...more: readonly (readonly [string, unknown])[]
): Expected => ({
  carried: [[path, value], ...more],
});

/**
 * Each field of a service with a value and the expected result. Paths continue from the workload.
 */
const FIELDS: Readonly<Record<string, readonly [value: string, expected: Expected]>> = {
  annotations: ["{a: b}", carried("pod_config.annotations", { a: "b" })],
  attach: ["false", ignored],
  blkio_config: ["{weight: 1}", lost],
  build: [".", lost],
  cap_add: ["[CAP_NET_ADMIN]", carried("container.security_context.capabilities", { add: ["NET_ADMIN"] })],
  cap_drop: ["[ALL]", carried("container.security_context.capabilities", { drop: ["ALL"] })],
  cgroup: ["host", lost],
  cgroup_parent: ["m", lost],
  command: ["run 'a b'", carried("container.args", ["run", "a b"])],
  configs: [
    "[{source: c, target: /etc/c}]",
    carried("volumes.0.config_map.config_map_name", "c", ["container.volume_mounts.0.mount_path", "/etc/c"]),
  ],
  container_name: ["x", lost],
  cpu_count: ["1", lost],
  cpu_percent: ["1", lost],
  cpu_period: ["1", lost],
  cpu_quota: ["1", lost],
  cpu_rt_period: ["1", lost],
  cpu_rt_runtime: ["1", lost],
  cpu_shares: ["1", lost],
  cpus: ["1.5", carried("container.resources.limits", { cpu: "1500m" })],
  cpuset: ["0", lost],
  credential_spec: ["{file: x}", lost],
  depends_on: ["[db, cache]", carried("pod_config.annotations", { "forage.dev/depends-on": "db, cache" })],
  deploy: ["{replicas: 3}", carried("scaling.replicas", 3)],
  develop: ["{watch: []}", ignored],
  device_cgroup_rules: ["[a]", lost],
  devices: ["[/dev/x]", lost],
  dns: ["10.0.0.1", carried("pod_config.dns_config.nameservers", ["10.0.0.1"])],
  dns_opt: [
    '["ndots:2", rotate]',
    carried("pod_config.dns_config.options", [{ name: "ndots", value: "2" }, { name: "rotate" }]),
  ],
  dns_search: ["[a.example]", carried("pod_config.dns_config.searches", ["a.example"])],
  domainname: ["x", lost],
  entrypoint: ["[/bin/run]", carried("container.command", ["/bin/run"])],
  env_file: [".env", lost],
  environment: [
    "[A=1, HERE]",
    carried("container.env", [
      { name: "A", value: "1" },
      { name: "HERE", value: "there" },
    ]),
  ],
  expose: ['["80"]', carried("container.ports.0.container_port", 80)],
  extends: ["{service: a}", lost],
  external_links: ["[a]", lost],
  extra_hosts: ["[a=1]", lost],
  gpus: ["all", lost],
  group_add: ["[33]", carried("pod_config.security_context.supplemental_groups", [33])],
  healthcheck: [
    "{test: true, interval: 1m, timeout: 1500ms, retries: 2, start_period: 5s}",
    carried("container.readiness_probe", {
      exec: { command: ["/bin/sh", "-c", "true"] },
      period_seconds: 60,
      timeout_seconds: 2,
      failure_threshold: 2,
    }),
  ],
  hostname: ["x", lost],
  image: ["other", carried("container.image", "other")],
  init: ["true", lost],
  ipc: ["host", lost],
  isolation: ["x", lost],
  label_file: ["x", lost],
  labels: ["[a=b, c]", carried("pod_config.annotations", { a: "b", c: "" })],
  links: ["[a]", lost],
  logging: ["{driver: x}", lost],
  mac_address: ["x", lost],
  mem_limit: ["512m", carried("container.resources.limits", { memory: "512Mi" })],
  mem_reservation: ["1g", carried("container.resources.requests", { memory: "1Gi" })],
  mem_swappiness: ["1", lost],
  memswap_limit: ["1g", lost],
  models: ["[a]", lost],
  network_mode: ["host", carried("pod_config.host_network", true)],
  networks: ["[a]", lost],
  oom_kill_disable: ["true", lost],
  oom_score_adj: ["1", lost],
  pid: ["host", lost],
  pids_limit: ["1", lost],
  platform: ["linux/arm64", lost],
  ports: [
    '["8080:80/udp"]',
    carried("container.ports.0", { name: "udp-80", container_port: 80, protocol: "UDP" }),
  ],
  post_start: ["[{command: a}]", lost],
  pre_stop: ["[{command: a}]", lost],
  privileged: ["true", carried("container.security_context.privileged", true)],
  profiles: ["[a]", lost],
  provider: ["{type: a}", lost],
  pull_policy: ["missing", carried("container.image_pull_policy", "IfNotPresent")],
  read_only: ["true", carried("container.security_context.read_only_root_filesystem", true)],
  restart: ["on-failure", carried("pod_config.restart_policy", "OnFailure")],
  runtime: ["kata", carried("pod_config.runtime_class_name", "kata")],
  scale: ["2", carried("scaling.replicas", 2)],
  secrets: [
    "[s]",
    carried("volumes.0.secret", { secret_name: "s", items: [{ key: "s", path: "s" }] }, [
      "container.volume_mounts.0",
      { name: "volume-1", mount_path: "/run/secrets/s", sub_path: "s", read_only: true },
    ]),
  ],
  security_opt: ["[a]", lost],
  shm_size: ["64m", carried("volumes.0.empty_dir", { medium: "Memory", size_limit: "64Mi" })],
  stdin_open: ["true", carried("container.stdin", true)],
  stop_grace_period: ["1m30s", carried("pod_config.termination_grace_period_seconds", 90)],
  stop_signal: ["SIGINT", lost],
  storage_opt: ["{size: 1g}", lost],
  sysctls: ["[a=1]", lost],
  tmpfs: ["/tmp", carried("volumes.0.empty_dir.medium", "Memory")],
  tty: ["true", carried("container.tty", true)],
  ulimits: ["{nofile: 1}", lost],
  use_api_socket: ["true", lost],
  user: ['"1000:1001"', carried("container.security_context", { run_as_user: 1000, run_as_group: 1001 })],
  userns_mode: ["host", lost],
  uts: ["host", lost],
  volumes: [
    "[data:/d:ro, /srv:/s, /e, {type: tmpfs, target: /t, tmpfs: {size: 1m}}]",
    carried("volumes", [
      { name: "volume-1", pvc: { claim_name: "data" } },
      { name: "volume-2", host_path: { path: "/srv" } },
      { name: "volume-3", empty_dir: {} },
      { name: "volume-4", empty_dir: { medium: "Memory", size_limit: "1Mi" } },
    ]),
  ],
  volumes_from: ["[a]", lost],
  working_dir: ["/app", carried("container.working_dir", "/app")],
  "x-forage": ["{registries: [r]}", carried("pod_config.image_pull_secrets", ["r"])],
};

describe("every field of a Compose service is carried over, lost or of no effect", () => {
  test("has an entry in the table for each field of the specification", () =>
    assert.deepEqual(Object.keys(FIELDS).sort(), Object.keys(SERVICE_FIELDS).sort()));

  const bare = workloadOf(ofField("x-nothing: 1"));
  for (const [field, [value, expected]] of Object.entries(FIELDS))
    test(field, () => {
      const found =
        field === "image" ? converted(`services: {web: {image: ${value}}}`) : ofField(`${field}: ${value}`);
      assert.deepEqual(found.problems, []);
      assert.deepEqual(
        found.losses.map(({ path }) => path),
        "lost" in expected ? [`services.web.${field}`] : [],
      );
      const workload = workloadOf(found);
      if (!("carried" in expected)) assert.deepEqual(workload, bare);
      for (const [path, want] of "carried" in expected ? expected.carried : [])
        assert.deepEqual(at(workload, path), want, path);
    });
});

function workloadOf({ resources }: Converted): unknown {
  return (resources[0]?.resource as { container_service: unknown } | undefined)?.container_service;
}

function at(value: unknown, path: string): unknown {
  return path.split(".").reduce((each, key) => (each as Record<string, unknown> | undefined)?.[key], value);
}

describe("services of a Compose file", () => {
  test("makes container ports available to other services, and published ports also to outside clients", () => {
    const { resources } = ofField('ports: ["8080:80", {target: 80, published: "443"}], expose: [9000]');
    assert.deepEqual(resources[1]?.resource, {
      name: "web",
      service: {
        target: "web",
        type: "LoadBalancer",
        ports: [
          { name: "tcp-80", port: 80 },
          { name: "tcp-8080", port: 8080, target_port: 80 },
          { name: "tcp-443", port: 443, target_port: 80 },
          { name: "tcp-9000", port: 9000 },
        ],
      },
    });
    assert.equal(at(ofField("expose: [80]").resources[1]?.resource, "service.type"), undefined);
  });

  test("converts the supported fields of deploy", () => {
    const { resources, losses, problems } = ofField(`deploy: {
      resources: {limits: {cpus: "0.25", memory: 1gb, pids: 5}, reservations: {memory: 64m}},
      placement: {constraints: [node.labels.zone == a, node.hostname != n1, node.role == manager]},
      update_config: {parallelism: 0, order: start-first, delay: 5s},
      restart_policy: {condition: none, max_attempts: 3}, mode: global, endpoint_mode: dnsrr, labels: {a: b}}`);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      losses.map(({ path }) => path.replace("services.web.deploy.", "")),
      [
        "resources.limits.pids",
        "placement.constraints[2]",
        "update_config.delay",
        "restart_policy.max_attempts",
        "mode",
      ],
    );
    const workload = workloadOf({ resources } as Converted);
    assert.deepEqual(at(workload, "container.resources"), {
      requests: { memory: "64Mi" },
      limits: { cpu: "250m", memory: "1Gi" },
    });
    assert.deepEqual(at(workload, "update_strategy.rolling_update"), {
      max_unavailable: "0",
      max_surge: "100%",
    });
    assert.deepEqual(at(workload, "pod_config.node_selector"), { zone: "a" });
    assert.deepEqual(at(workload, "pod_config.affinity.node_affinity.required.terms.0.match_expressions"), [
      { key: "kubernetes.io/hostname", operator: "NotIn", values: ["n1"] },
    ]);
    assert.equal(at(workload, "pod_config.restart_policy"), "Never");
  });

  test("converts x-forage to routes, a type, a namespace and labels", () => {
    const { namespace, labels, resources } = converted(
      `name: blog
x-forage: {namespace: shop, labels: {team: x}}
services: {web: {image: app, expose: [80], x-forage: {type: NodePort, routes: [a.example/api], tls: true}}}`,
    );
    assert.deepEqual([namespace, labels], ["shop", { app: "blog", team: "x" }]);
    assert.equal(at(resources[1]?.resource, "service.type"), "NodePort");
    assert.deepEqual(at(resources[2]?.resource, "route"), {
      target_service: "web",
      hostnames: ["a.example"],
      rules: [{ matches: [{ path: { type: "PathPrefix", value: "/api" } }] }],
      tls: { mode: "Terminate" },
    });
  });

  test("resolves merge keys and aliases, with precedence for the service's own fields", () => {
    const { resources, problems } = converted(
      "x-a: &a {image: one, tty: true}\nservices: {web: {<<: [*a], image: two}, other: *a}",
    );
    assert.deepEqual(problems, []);
    assert.deepEqual(
      resources.map(({ resource }) => [
        at(resource, "container_service.container.image"),
        at(resource, "container_service.container.tty"),
      ]),
      [
        ["two", true],
        ["one", true],
      ],
    );
  });

  test("reports each problem at its line", () => {
    for (const [field, path, message] of [
      ["imgae: x", "imgae", /unknown field \(did you mean "image"\?\)/],
      ['ports: ["80-90:80-90"]', "ports[0]", /is a range/],
      ["ports: [99999]", "ports[0]", /not a port from 1/],
      ["ports: [80/icmp]", "ports[0]", /none of tcp/],
      ["volumes: [data]", "volumes[0]", /must be \[SOURCE:\]\/PATH/],
      ["mem_limit: much", "mem_limit", /an amount/],
      ["cpus: many", "cpus", /number of cores/],
      ["restart: maybe", "restart", /none of no, always/],
      ["environment: [MISSING]", "environment[0]", /needs the variable MISSING/],
      [`command: "$$NO $\{MISSING:?is needed}"`, "command", /needs the variable MISSING.*: is needed/],
      ['command: "echo \'open"', "command", /quote that is not closed/],
      ["tty: perhaps", "tty", /true or false/],
      ["ports: {a: b}", "ports", /must be a list/],
      ["deploy: [a]", "deploy", /must be a mapping/],
      ["deploy: {replcas: 1}", "deploy.replcas", /unknown field/],
      ["x-forage: {routes: [a.example]}", "", /has routes but no ports/],
    ] as const) {
      const { problems } = ofField(field);
      const want = `services.web${path === "" ? "" : `.${path}`}`;
      assert.deepEqual([problems[0]?.path, message.test(problems[0]?.message ?? "")], [want, true], field);
      assert.equal(problems[0]?.position.line, 1);
    }
    assert.match(converted("services: {web: {}}").problems[0]?.message ?? "", /has no image/);
    assert.match(converted("services: {}\nbogus: 1").problems[0]?.message ?? "", /unknown field/);
  });

  test("names the objects of the file, and explains what to do about losses", () => {
    const { losses, problems } = converted(`services: {}
networks: {a: {}}
volumes: {data: {}, nfs: {driver_opts: {type: nfs}}}
secrets: {a: {external: true}, b: {file: ./b}}
configs: {c: {content: x}}
include: [a]`);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      losses.map(({ path }) => path),
      ["networks", "volumes.nfs.driver_opts", "secrets.b.file", "configs.c.content", "include"],
    );
    assert.match(losses[2]?.message ?? "", /forage secret set b --from-file b=FILE/);
  });
});

test("replaces variables in values", () => {
  const env = { A: "x", EMPTY: "" };
  const cases: Record<string, string> = {
    a$$b: "a$b",
    "$A/${A}": "x/x",
    "${NO:-d}${EMPTY:-e}${EMPTY-f}": "de",
    "${A:+set}${NO+set}": "set",
  };
  for (const [text, want] of Object.entries(cases))
    assert.deepEqual(interpolate(text, env), { text: want, problem: undefined }, text);
  for (const text of ["$NO", "a $ b", ...["NO}", "EMPTY:?why}", "NO"].map((rest) => `$\{${rest}`)])
    assert.notEqual(interpolate(text, env).problem, undefined, text);
});

test("converts command lines, amounts and durations", () => {
  assert.deepEqual(splitWords(`a 'b c' "d \\" e"f\\ g ''`), ["a", "b c", 'd " ef g', ""]);
  assert.equal(splitWords('a "b'), undefined);
  assert.deepEqual(["512m", "1GB", "1024", "1.5g", "x"].map(memoryQuantity), [
    ...["512Mi", "1Gi", "1024", undefined, undefined],
  ]);
  assert.deepEqual(["0.5", "2", "0.0001", ".1", "", "x"].map(cpuQuantity), [
    ...["500m", "2", "1m", "100m", undefined, undefined],
  ]);
  assert.deepEqual(["1m30s", "1500ms", "2h", "5", ""].map(wholeSeconds), [90, 2, 7200, undefined, undefined]);
});
