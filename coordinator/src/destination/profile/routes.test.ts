import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { RequestMatch } from "@forage/proto/destination";
import { RouteRule } from "@forage/proto/forest/v1/forage";
import type { Route } from "../../gateway/route.ts";
import { pathRegex } from "./path-regex.ts";
import { overridesOf, profileRoutes, splitBackends } from "./routes.ts";
import type { ServiceRoute } from "./service-routes.ts";

type Rule = Parameters<typeof RouteRule.fromPartial>[0];

describe("converts a path match to a regular expression for the whole path", () => {
  for (const [type, value, expected, matches, not] of [
    ["Exact", "/a.b", "/a\\.b", ["/a.b"], ["/axb", "/a.b/", "/a.b/c"]],
    ["PathPrefix", "/a", "/a(/.*)?", ["/a", "/a/", "/a/b"], ["/ab", "/", "/b/a"]],
    ["", "/a/", "/a(/.*)?", ["/a", "/a/b"], ["/ab"]],
    ["PathPrefix", "/a(b)+", "/a\\(b\\)\\+(/.*)?", ["/a(b)+", "/a(b)+/c"], ["/ab"]],
    ["RegularExpression", "/v[0-9]+/.*", "/v[0-9]+/.*", ["/v1/x"], ["/v/x"]],
    ["PathPrefix", "/", undefined, [], []],
    ["PathPrefix", "", undefined, [], []],
  ] as const) {
    test(`${type} ${value}`, () => {
      const regex = pathRegex({ type, value });
      assert.equal(regex, expected);
      const whole = new RegExp(`^(?:${regex})$`);
      for (const path of matches) assert.match(path, whole);
      for (const path of not) assert.doesNotMatch(path, whole);
    });
  }
});

describe("returns routes in the order of precedence", () => {
  const prefix = (value: string) => ({ path: { type: "PathPrefix", value } });
  for (const [what, routes, expected] of [
    ["none", [], []],
    ["a rule without matches takes everything", [aRoute("a", [{}])], ["a .*"]],
    [
      "each match for itself",
      [aRoute("a", [{ matches: [prefix("/x"), prefix("/yy")] }])],
      ["a /yy(/.*)?", "a /x(/.*)?"],
    ],
    [
      "exact ones, then expressions, then long prefixes, then the rest",
      [
        aRoute("a", [
          {},
          { matches: [{ path: { type: "RegularExpression", value: "/long/.*" } }] },
          { matches: [prefix("/long")] },
          { matches: [prefix("/longer")] },
          { matches: [{ path: { type: "Exact", value: "/" } }] },
        ]),
      ],
      ["a /", "a /long/.*", "a /longer(/.*)?", "a /long(/.*)?", "a .*"],
    ],
    [
      "with a method before without",
      [aRoute("a", [{ matches: [prefix("/x")] }, { matches: [{ ...prefix("/x"), method: "PUT" }] }])],
      ["a /x(/.*)? & PUT", "a /x(/.*)?"],
    ],
    ["a method alone", [aRoute("a", [{ matches: [{ method: "PURGE" }] }])], ["a PURGE"]],
    [
      "by priority where they match alike",
      [aRoute("a", [{}]), aRoute("b", [{}], { priority: 1 })],
      ["b .*", "a .*"],
    ],
    ["none of what passes through encrypted", [aRoute("a", [{}], { encrypted: true })], []],
    [
      "none that depends on headers or queries, which profiles can't express",
      [
        aRoute("a", [
          { matches: [{ ...prefix("/x"), headers: [{ name: "h", value: "v" }] }, prefix("/y")] },
          { matches: [{ queryParams: [{ name: "q", value: "v" }] }] },
        ]),
      ],
      ["a /y(/.*)?"],
    ],
  ] as readonly (readonly [string, readonly ServiceRoute[], readonly string[]])[]) {
    test(what, () =>
      assert.deepEqual(
        profileRoutes(routes, "none").map((r) => `${r.metricsLabels.route} ${shown(r.condition)}`),
        expected,
      ),
    );
  }
});

test("includes timeout, failure classes and retry permission of a route", () => {
  const matches = [{ method: "GET" }, { method: "POST" }];
  const routes = [aRoute("a", [{ matches, timeout: { seconds: 3n } }])];
  for (const [retry, expected] of [
    ["none", [false, false]],
    ["safe", [true, false]],
    ["all", [true, true]],
  ] as const) {
    const found = profileRoutes(routes, retry);
    assert.deepEqual(
      found.map(({ isRetryable }) => isRetryable),
      expected,
    );
    assert.deepEqual(found[0]?.timeout, { seconds: 3n, nanos: 0 });
    assert.deepEqual(found[0]?.responseClasses, [
      { condition: { match: { $case: "status", value: { min: 500, max: 599 } } }, isFailure: true },
    ]);
  }
});

test("limits the number of routes in a profile", () => {
  const rules = Array.from({ length: 600 }, (_, n) => ({ matches: [{ path: { value: `/${n}` } }] }));
  assert.equal(profileRoutes([aRoute("a", rules)], "none").length, 500);
});

describe("returns the backends among which all traffic is split", () => {
  const backends = [
    { service: "v1", port: 80, weight: 90 },
    { service: "v2", port: 0, weight: 10 },
  ];
  for (const [what, routes, expected] of [
    ["none without a route", [], ""],
    ["none without backends", [aRoute("a", [{}])], ""],
    ["those of a rule for everything", [aRoute("a", [{ backends }])], "v1:90 v2:10"],
    [
      "those of a rule for the root",
      [aRoute("a", [{ backends, matches: [{ path: { value: "/" } }] }])],
      "v1:90 v2:10",
    ],
    ["none of a rule for a part", [aRoute("a", [{ backends, matches: [{ path: { value: "/x" } }] }])], ""],
    ["none of a rule for one method", [aRoute("a", [{ backends, matches: [{ method: "GET" }] }])], ""],
    [
      "none without weight among others that have one",
      [
        aRoute("a", [
          {
            backends: [
              { service: "v1", weight: 0 },
              { service: "v2", weight: 5 },
            ],
          },
        ]),
      ],
      "v2:5",
    ],
    [
      "all alike where none has a weight",
      [aRoute("a", [{ backends: [{ service: "v1" }, { service: "v2" }] }])],
      "v1:1 v2:1",
    ],
    [
      "those of the first route",
      [aRoute("b", [{ backends: [{ service: "v3", weight: 1 }] }]), aRoute("a", [{ backends }])],
      "v3:1",
    ],
    ["none of a route of another service", [aRoute("a", [{ backends }], { own: false })], ""],
    [
      "those of what passes through encrypted",
      [aRoute("a", [{ backends }], { encrypted: true })],
      "v1:90 v2:10",
    ],
  ] as readonly (readonly [string, readonly ServiceRoute[], string])[]) {
    test(what, () =>
      assert.equal(
        splitBackends(routes)
          .map(({ service, weight }) => `${service}:${weight}`)
          .join(" "),
        expected,
      ),
    );
  }
  test("converts backends with their own port or the requested one", () => {
    const [first, second] = overridesOf(backends, { namespace: "shop", domain: "cluster.local", port: 8080 });
    assert.equal(first?.authority, "v1.shop.svc.cluster.local:80");
    assert.equal(second?.authority, "v2.shop.svc.cluster.local:8080");
    assert.deepEqual(first?.backendRef?.kind, {
      $case: "resource",
      value: { group: "core", kind: "Service", name: "v1", namespace: "shop", section: "", port: 80 },
    });
  });
});

interface Fields {
  readonly priority?: number;
  readonly own?: boolean;
  readonly encrypted?: boolean;
}

function aRoute(
  name: string,
  given: readonly Rule[],
  { priority = 0, own = true, encrypted = false }: Fields = {},
): ServiceRoute {
  const rules = given.map((rule) => RouteRule.fromPartial(rule));
  const route: Route = {
    kind: "route",
    namespace: "shop",
    name,
    gateway: "default",
    hostnames: ["*"],
    rules,
    tls: encrypted ? { mode: "Passthrough" } : undefined,
    target: own ? "web" : "other",
    priority,
    createdMs: 0,
  };
  return { route, rules, own };
}

function shown(match: RequestMatch | undefined): string {
  const value = match?.match;
  switch (value?.$case) {
    case "path":
      return value.value.regex;
    case "method": {
      const type = value.value.type;
      return type?.$case === "unregistered" ? type.value : (["GET", "POST", "PUT"][type?.value ?? -1] ?? "");
    }
    case "all":
      return value.value.matches.map(shown).join(" & ");
    default:
      return "?";
  }
}
