import assert from "node:assert/strict";
import { test } from "node:test";
import { Container, Lifecycle } from "@forage/proto/forest/v1/forage";
import type { ProbeHandler } from "../probes/probe-spec.ts";
import { parseHooks, parseProbes } from "./parse-probes.ts";

type Given = Parameters<typeof Container.fromPartial>[0];
type Hooks = Parameters<typeof Lifecycle.fromPartial>[0];

const HANDLERS: readonly (readonly [what: string, given: object, gives: ProbeHandler])[] = [
  [
    "http_get with all its fields",
    {
      $case: "httpGet",
      value: { path: "/up?x=1", port: 80, scheme: "HTTPS", httpHeaders: [{ name: "A", value: "b" }] },
    },
    {
      type: "http",
      scheme: "HTTPS",
      port: 80,
      path: "/up?x=1",
      headers: [{ name: "A", value: "b" }],
    },
  ],
  [
    "http_get with a port only",
    { $case: "httpGet", value: { port: 80 } },
    { type: "http", scheme: "HTTP", port: 80, path: "/", headers: [] },
  ],
  ["tcp_socket", { $case: "tcpSocket", value: { port: 5432 } }, { type: "tcp", port: 5432 }],
  [
    "exec",
    { $case: "exec", value: { command: ["test", "-f", "/up"] } },
    { type: "exec", command: ["test", "-f", "/up"] },
  ],
  [
    "grpc",
    { $case: "grpc", value: { port: 9000, service: "web" } },
    { type: "grpc", port: 9000, service: "web" },
  ],
];

for (const [what, handler, gives] of HANDLERS) {
  test(`parses a probe by ${what}`, () => {
    for (const field of ["startupProbe", "livenessProbe", "readinessProbe"] as const) {
      const probes = parseProbes(Container.fromPartial({ [field]: { handler } } as Given));
      const kind = field.replace("Probe", "") as "startup" | "liveness" | "readiness";
      assert.deepEqual(Object.keys(probes ?? {}), [kind]);
      assert.deepEqual(probes?.[kind]?.handler, gives);
    }
  });
}

test("a probe keeps its own numbers, and gets Kubernetes' defaults for missing ones", () => {
  const handler = { $case: "tcpSocket", value: { port: 1 } } as const;
  const probes = parseProbes(
    Container.fromPartial({
      readinessProbe: {
        handler,
        initialDelaySeconds: 1,
        periodSeconds: 2,
        timeoutSeconds: 3,
        successThreshold: 4,
        failureThreshold: 5,
      },
      livenessProbe: { handler },
    }),
  );
  const own = { initialDelayMs: 1_000, periodMs: 2_000, timeoutMs: 3_000 };
  const defaults = { initialDelayMs: 0, periodMs: 10_000, timeoutMs: 1_000 };
  const tcp = { type: "tcp", port: 1 };
  assert.deepEqual(probes, {
    readiness: { handler: tcp, ...own, successThreshold: 4, failureThreshold: 5 },
    liveness: { handler: tcp, ...defaults, successThreshold: 1, failureThreshold: 3 },
  });
});

test("a container without probes and hooks has none", () => {
  assert.equal(parseProbes(Container.fromPartial({})), undefined);
  assert.equal(parseHooks(undefined), undefined);
  assert.equal(parseHooks(Lifecycle.fromPartial({})), undefined);
});

test("parses hooks with the same actions as probes", () => {
  const hooks = parseHooks(
    Lifecycle.fromPartial({
      postStart: { action: { $case: "exec", value: { command: ["touch", "/up"] } } },
      preStop: { action: { $case: "httpGet", value: { port: 80, path: "/bye" } } },
    }),
  );
  assert.deepEqual(hooks, {
    postStart: { type: "exec", command: ["touch", "/up"] },
    preStop: { type: "http", scheme: "HTTP", port: 80, path: "/bye", headers: [] },
  });
});

for (const [what, probe, problem] of [
  ["no handler", {}, /liveness probe: it has no handler/],
  ["an empty command", { handler: { $case: "exec", value: { command: [] } } }, /the command is empty/],
  ["no port", { handler: { $case: "tcpSocket", value: { port: 0 } } }, /0 is not a port/],
  ["a scheme of its own", { handler: { $case: "httpGet", value: { port: 1, scheme: "FTP" } } }, /"FTP"/],
  [
    "two successes for liveness",
    { handler: { $case: "tcpSocket", value: { port: 1 } }, successThreshold: 2 },
    /success_threshold must be 1/,
  ],
] as const) {
  test(`rejects a probe with ${what}`, () => {
    const container = Container.fromPartial({ livenessProbe: probe } as unknown as Given);
    assert.throws(() => parseProbes(container), problem);
  });
}

for (const [what, hooks, problem] of [
  ["no action", { preStop: {} }, /pre_stop: it has no action/],
  ["an empty command", { postStart: { action: { $case: "exec", value: {} } } }, /post_start: exec/],
  ["no port", { preStop: { action: { $case: "tcpSocket", value: {} } } }, /pre_stop: tcp: 0/],
] as const) {
  test(`rejects a hook with ${what}`, () => {
    assert.throws(() => parseHooks(Lifecycle.fromPartial(hooks as unknown as Hooks)), problem);
  });
}
