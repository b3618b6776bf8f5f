import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import type { RouteMatch } from "@forage/proto/forest/v1/forage";
import { aRoute } from "../../test/support/gateway/a-route.ts";
import { type Asked, covers, holds, nearness, ruleFor } from "../../test/support/gateway/ask.ts";
import { compileGateway } from "./compile.ts";
import { compareRoutes, type Route } from "./route.ts";

const HOSTNAMES = ["app.example.com", "b.app.example.com", "*.app.example.com", "*.example.com", "other.org"];
const PATHS = ["/", "/a", "/a/b", "/a/b/c", "/ab"];
const EXPRESSIONS = ["/a/.*", "/[ab]+", ".*c"];

test("answers each request by the best matching rule in the order of the Gateway API", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = randomOf(seed);
    const routes = someRoutes(random);
    const { hosts } = compile(routes);
    for (let tries = 0; tries < 40; tries++) {
      const asked = aRequest(random);
      const rule = ruleFor(hosts, asked);
      assert.equal(
        rule?.backends[0]?.service,
        bestOf(routes, asked),
        `seed ${seed}: ${JSON.stringify(asked)}`,
      );
    }
  }
});

test("gives the same result for any order of routes", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = randomOf(seed);
    const routes = someRoutes(random);
    const [one, other] = [compile(routes), compile(random.shuffled(routes))];
    assert.deepEqual(sorted(other.hosts), sorted(one.hosts), `seed ${seed}`);
    assert.deepEqual(sorted(other.findings), sorted(one.findings), `seed ${seed}`);
  }
});

test("applies each match of a rule once, or reports it as hidden", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const { hosts, findings } = compile(someRoutes(randomOf(seed)));
    for (const { rules, hostname } of hosts.values()) {
      const keys = rules.map(({ match }) => JSON.stringify(match));
      assert.equal(new Set(keys).size, keys.length, `seed ${seed}, ${hostname}`);
    }
    for (const { hostnames: found, conflicts, route } of findings.values()) {
      const hidden = found.reduce((sum, it) => sum + it.matches - it.effectiveMatches, 0);
      const reported = conflicts.filter(({ reason }) => reason === "MatchShadowed").length;
      assert.equal(reported, hidden, `seed ${seed}, ${route.name}`);
    }
  }
});

/**
 * Returns the expected rule by another algorithm than the code under test: among all matches, one
 * that none precedes.
 */
function bestOf(routes: readonly Route[], asked: Asked): string | undefined {
  const all = routes.flatMap((route) =>
    route.hostnames
      .filter((hostname) => covers(hostname, asked.host))
      .flatMap((hostname) =>
        route.rules.flatMap((rule, ruleIndex) =>
          rule.matches
            .filter((match) => holds(match, asked))
            .map((match) => ({ route, rule, rank: [nearness(hostname), ...goodness(match)], ruleIndex })),
        ),
      ),
  );
  const best = all.reduce<(typeof all)[number] | undefined>((a, b) => {
    if (a === undefined) return b;
    const at = a.rank.findIndex((value, index) => value !== b.rank[index]);
    if (at >= 0) return (a.rank[at] ?? 0) > (b.rank[at] ?? 0) ? a : b;
    const order = compareRoutes(a.route, b.route) || a.ruleIndex - b.ruleIndex;
    return order <= 0 ? a : b;
  }, undefined);
  return best?.rule.backends[0]?.service;
}

function goodness({ path, headers, queryParams, method }: RouteMatch): number[] {
  const kinds = ["PathPrefix", "RegularExpression", "Exact"];
  const value = path?.value ?? "/";
  return [
    kinds.indexOf(path?.type ?? "PathPrefix"),
    value.length,
    method ? 1 : 0,
    headers.length,
    queryParams.length,
  ];
}

function compile(routes: readonly Route[]) {
  return compileGateway({
    routes,
    portsOf: () => [{ name: "", port: 80, targetPort: 0, protocol: "TCP", nodePort: 0 }],
    certificateOf: () => ({ type: "missing", reason: "None", message: "" }),
  });
}

function someRoutes(random: Random): Route[] {
  let backend = 0;
  const times = [1_000, 2_000];
  return Array.from({ length: 1 + random.below(6) }, (_, index) =>
    aRoute({
      name: `r${index}`,
      namespace: random.pick(["a", "b"]),
      createdMs: random.pick(times),
      spec: {
        priority: random.pick([0, 0, 0, 5]),
        hostnames: random.shuffled(HOSTNAMES).slice(0, random.below(3)),
        rules: Array.from({ length: 1 + random.below(3) }, () => ({
          matches: Array.from({ length: 1 + random.below(2) }, () => aMatch(random)),
          backends: [{ service: `s${backend++}`, port: 80 }],
        })),
      },
    }),
  );
}

function aMatch(random: Random) {
  const type = random.pick(["Exact", "PathPrefix", "PathPrefix", "RegularExpression"]);
  const value = random.pick(type === "RegularExpression" ? EXPRESSIONS : PATHS);
  return {
    path: random.chance(0.8) ? { type, value } : undefined,
    method: random.chance(0.2) ? "GET" : "",
    headers: random.chance(0.3) ? [{ name: "x-a", value: "1" }] : [],
    queryParams: random.chance(0.2) ? [{ name: "q", type: "RegularExpression", value: "[12]" }] : [],
  };
}

function aRequest(random: Random): Asked {
  return {
    host: random.pick([
      "app.example.com",
      "b.app.example.com",
      "x.y.app.example.com",
      "z.example.com",
      "other.org",
      "no.one",
    ]),
    path: random.pick([...PATHS, "/abc", "/x/c"]),
    method: random.pick(["GET", "POST"]),
    headers: random.chance(0.5) ? { "x-a": "1" } : {},
    query: random.chance(0.5) ? { q: random.pick(["1", "3"]) } : {},
  };
}

function sorted<V>(map: ReadonlyMap<string, V>): [string, V][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
