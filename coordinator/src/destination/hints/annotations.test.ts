import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noHints, readAnnotations } from "./annotations.ts";
import { isOpaque, protocolOfPort } from "./hints-of.ts";

test("returns the default opaque ports and budget, and no other hints, without annotations", () => {
  assert.deepEqual(readAnnotations({ "example.com/owner": "x" }), { hints: noHints, problems: [] });
  for (const port of [25, 587, 3306, 4444, 5432, 6379, 9300, 11_211])
    assert.ok(isOpaque(noHints, { port, name: "" }), String(port));
  assert.ok(!isOpaque(noHints, { port: 80, name: "http" }));
  assert.deepEqual(noHints.retryBudget, {
    retryRatio: 0.2,
    minRetriesPerSecond: 10,
    ttl: { seconds: 10n, nanos: 0 },
  });
  assert.ok(noHints.zoneAware);
});

describe("opaque ports", () => {
  for (const [annotations, opaque, not] of [
    [{ "config.linkerd.io/opaque-ports": "80,8000-8002" }, [80, 8000, 8002], [81, 8003, 5432]],
    [{ "config.linkerd.io/opaque-ports": "" }, [], [5432]],
    [{ "forage.dev/opaque-ports": "90", "config.linkerd.io/opaque-ports": "80" }, [90], [80]],
    [{ "config.linkerd.io/opaque-ports": "80", "forage.dev/opaque-ports": "90" }, [90], [80]],
    [{ "forage.dev/protocol": "opaque" }, [80, 81], []],
    [{ "forage.dev/protocol": "detect" }, [], [5432]],
    [{ "forage.dev/protocol": "http2, 90=opaque" }, [90], [80, 5432]],
    [{ "forage.dev/protocol": "5432=http2" }, [3306], [5432]],
  ] as const) {
    test(JSON.stringify(annotations), () => {
      const { hints, problems } = readAnnotations(annotations as Record<string, string>);
      assert.deepEqual(problems, []);
      for (const port of opaque) assert.ok(isOpaque(hints, { port, name: "" }), String(port));
      for (const port of not) assert.ok(!isOpaque(hints, { port, name: "" }), String(port));
    });
  }
  test("also by name", () => {
    const { hints } = readAnnotations({
      "forage.dev/opaque-ports": "db",
      "forage.dev/protocol": "api=http2",
    });
    assert.ok(isOpaque(hints, { port: 1, name: "db" }));
    assert.equal(protocolOfPort(hints, { port: 2, name: "api" }), "http2");
    assert.equal(protocolOfPort(hints, { port: 2, name: "" }), undefined);
  });
});

describe("further annotations of a service", () => {
  const name = "web.shop.serviceaccount.identity.linkerd.cluster.local";
  const uri = "spiffe://example.org/ns/shop/sa/web";
  for (const [annotations, expected] of [
    [
      { "forage.dev/tls-identity": name },
      { tlsIdentity: { strategy: { $case: "dnsLikeIdentity", value: { name } }, serverName: { name } } },
    ],
    [
      { "forage.dev/tls-identity": uri, "forage.dev/tls-server-name": "web.example" },
      {
        tlsIdentity: {
          strategy: { $case: "uriLikeIdentity", value: { uri } },
          serverName: { name: "web.example" },
        },
      },
    ],
    [
      { "mirror.linkerd.io/remote-svc-fq-name": "web.shop.svc.east.example" },
      { authorityOverride: "web.shop.svc.east.example" },
    ],
    [{ "forage.dev/authority-override": "web.example:8080" }, { authorityOverride: "web.example:8080" }],
    [{ "forage.dev/opaque-transport-port": "4143" }, { opaqueTransportPort: 4143 }],
    [{ "service.kubernetes.io/topology-mode": "Disabled" }, { zoneAware: false }],
    [{ "forage.dev/retry": "safe" }, { retry: "safe" }],
    [
      {
        "forage.dev/retry-ratio": "0.5",
        "forage.dev/retry-min-per-second": "3",
        "forage.dev/retry-ttl": "1m",
      },
      { retryBudget: { retryRatio: 0.5, minRetriesPerSecond: 3, ttl: { seconds: 60n, nanos: 0 } } },
    ],
    [
      { "forage.dev/http2-keep-alive-interval": "10s", "forage.dev/http2-keep-alive-timeout": "250ms" },
      {
        http2: {
          flowControl: undefined,
          keepAlive: {
            interval: { seconds: 10n, nanos: 0 },
            timeout: { seconds: 0n, nanos: 250_000_000 },
            whileIdle: false,
          },
          internals: undefined,
        },
      },
    ],
    [
      {
        "forage.dev/http2-connection-window": "1048576",
        "forage.dev/http2-stream-window": "65535",
        "forage.dev/http2-max-frame-size": "16384",
      },
      {
        http2: {
          flowControl: {
            initialConnectionWindowSize: 1_048_576,
            initialStreamWindowSize: 65_535,
            adaptiveFlowControl: false,
          },
          keepAlive: undefined,
          internals: { maxConcurrentResetStreams: 0, maxFrameSize: 16_384, maxSendBufSize: 0 },
        },
      },
    ],
  ] as const) {
    test(Object.keys(annotations).join(" "), () =>
      assert.deepEqual(readAnnotations(annotations as Record<string, string>), {
        hints: { ...noHints, ...expected },
        problems: [],
      }),
    );
  }
});

describe("refused annotations", () => {
  for (const [key, value] of [
    ["forage.dev/opaque-port", "80"],
    ["Forage.dev/retry", "safe"],
    ["forage.dev/opaque-ports", "0"],
    ["forage.dev/opaque-ports", "80-79"],
    ["forage.dev/opaque-ports", "65536"],
    ["forage.dev/opaque-ports", "a_b"],
    ["forage.dev/opaque-ports", Array.from({ length: 201 }, () => "1").join()],
    ["forage.dev/protocol", "http"],
    ["forage.dev/protocol", ""],
    ["forage.dev/protocol", "80=http2=opaque"],
    ["forage.dev/opaque-transport-port", "65535"],
    ["forage.dev/tls-identity", "-x"],
    ["forage.dev/tls-identity", "192.0.2.1"],
    ["forage.dev/tls-identity", "spiffe://example.org/x"],
    ["forage.dev/tls-identity", "spiffe://"],
    ["forage.dev/tls-server-name", "web.example"],
    ["forage.dev/authority-override", "web.example:0"],
    ["forage.dev/authority-override", "web/x"],
    ["forage.dev/topology-mode", "off"],
    ["forage.dev/retry", "5xx"],
    ["forage.dev/retry-ratio", "1001"],
    ["forage.dev/retry-ratio", "-1"],
    ["forage.dev/retry-ttl", "0s"],
    ["forage.dev/retry-ttl", "10"],
    ["forage.dev/http2-stream-window", "65535"],
    ["forage.dev/http2-keep-alive-timeout", "3s"],
    ["forage.dev/http2-keep-alive-while-idle", "true"],
    ["forage.dev/http2-keep-alive-while-idle", "yes"],
    ["forage.dev/http2-max-frame-size", "1"],
    ["forage.dev/__proto__", "x"],
  ] as const) {
    test(`${key}: ${value.slice(0, 30)}`, () => {
      const { hints, problems } = readAnnotations({ [key]: value });
      assert.ok(problems.length > 0);
      assert.ok(problems.every((found) => found.problem !== ""));
      if (!key.includes("tls-identity")) assert.deepEqual(hints, noHints);
      assert.equal(hints.tlsIdentity, undefined);
    });
  }
});
