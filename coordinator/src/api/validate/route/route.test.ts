import { describeSpec } from "../../../../test/support/spec-cases.ts";

const BACKEND = { service: "web", port: 80 };
const rule = (fields: object) => ({ rules: [fields] });
const match = (fields: object) => rule({ matches: [fields] });
const filter = ($case: string, value: object, more: object = {}) =>
  rule({ filters: [{ filter: { $case, value } }], ...more });
const passthrough = (fields: object) => ({ tls: { mode: "Passthrough" }, ...fields });

describeSpec("route", "route", [
  ["a target alone", {}, []],
  ["no target", { targetService: "" }, ["target_service"]],
  ["no target, but backends", { targetService: "", ...rule({ backends: [BACKEND] }) }, []],
  ["no target, but a redirect", { targetService: "", ...filter("requestRedirect", { scheme: "https" }) }, []],
  [
    "a rule without backends and target",
    { targetService: "", rules: [{ backends: [BACKEND] }, {}] },
    ["target_service"],
  ],
  ["hostnames", { hostnames: ["a.example.com", "*.example.com"] }, []],
  ["a wildcard alone", { hostnames: ["*"] }, ["hostnames[0]"]],
  ["a hostname twice", { hostnames: ["a.example", "a.example"] }, ["hostnames[1]"]],
  ["65 hostnames", { hostnames: Array.from({ length: 65 }, (_, i) => `h${i}.example`) }, ["hostnames"]],
  ["129 rules", { rules: Array.from({ length: 129 }, () => ({})) }, ["rules"]],
  ["a gateway's name with a space", { gatewayRef: "a b" }, ["gateway_ref"]],
  ["an unknown TLS mode", { tls: { mode: "mTLS" } }, ["tls.mode"]],
  ["a certificate", { tls: { certificateRef: "example-com" } }, []],
  ["a certificate's name with a slash", { tls: { certificateRef: "a/b" } }, ["tls.certificate_ref"]],
  ["passthrough", passthrough(rule({ backends: [BACKEND] })), []],
  ["passthrough with matches", passthrough(match({})), ["rules[0].matches"]],
  [
    "passthrough with filters",
    passthrough(filter("requestHeaderModifier", { remove: ["X-A"] })),
    ["rules[0].filters"],
  ],
  ["passthrough with a time-out", passthrough(rule({ timeout: { seconds: 1n } })), ["rules[0].timeout"]],
  [
    "passthrough with a certificate",
    { tls: { mode: "Passthrough", certificateRef: "a" } },
    ["tls.certificate_ref"],
  ],
]);

describeSpec("route", "rule", [
  ["a time-out", rule({ timeout: { seconds: 0n, nanos: 500_000_000 } }), []],
  ["a negative time-out", rule({ timeout: { seconds: -1n } }), ["rules[0].timeout"]],
  ["two days", rule({ timeout: { seconds: 172_800n } }), ["rules[0].timeout"]],
  ["weights", rule({ backends: [{ ...BACKEND, weight: 100 }, BACKEND] }), []],
  ["a weight of 101", rule({ backends: [{ ...BACKEND, weight: 101 }] }), ["rules[0].backends[0].weight"]],
  ["a backend without a port", rule({ backends: [{ service: "web" }] }), ["rules[0].backends[0].port"]],
  ["a backend without a service", rule({ backends: [{ port: 80 }] }), ["rules[0].backends[0].service"]],
  ["17 backends", rule({ backends: Array.from({ length: 17 }, () => BACKEND) }), ["rules[0].backends"]],
  ["65 matches", rule({ matches: Array.from({ length: 65 }, () => ({})) }), ["rules[0].matches"]],
]);

describeSpec("route", "match", [
  ["nothing", match({}), []],
  ["a prefix", match({ path: { value: "/v1" } }), []],
  ["a path without a slash", match({ path: { value: "v1" } }), ["rules[0].matches[0].path.value"]],
  [
    "a path with ..",
    match({ path: { type: "Exact", value: "/a/../b" } }),
    ["rules[0].matches[0].path.value"],
  ],
  ["an unknown type", match({ path: { type: "Glob" } }), ["rules[0].matches[0].path.type"]],
  ["a regular expression", match({ path: { type: "RegularExpression", value: "/v[0-9]+/.*" } }), []],
  [
    "an expression with look-around",
    match({ path: { type: "RegularExpression", value: "/(?=a)" } }),
    ["rules[0].matches[0].path.value"],
  ],
  ["an empty one", match({ path: { type: "RegularExpression" } }), ["rules[0].matches[0].path.value"]],
  ["a header", match({ headers: [{ name: "X-A", value: "1" }] }), []],
  [
    "a header without a value",
    match({ headers: [{ name: "X-A" }] }),
    ["rules[0].matches[0].headers[0].value"],
  ],
  [
    "a header's name with a colon",
    match({ headers: [{ name: ":path", value: "1" }] }),
    ["rules[0].matches[0].headers[0].name"],
  ],
  [
    "a header twice",
    match({
      headers: [
        { name: "X-A", value: "1" },
        { name: "x-a", value: "2" },
      ],
    }),
    ["rules[0].matches[0].headers[1].name"],
  ],
  [
    "a header by a broken expression",
    match({ headers: [{ type: "RegularExpression", name: "X-A", value: "(" }] }),
    ["rules[0].matches[0].headers[0].value"],
  ],
  [
    "17 headers",
    match({ headers: Array.from({ length: 17 }, (_, i) => ({ name: `X-${i}`, value: "1" })) }),
    ["rules[0].matches[0].headers"],
  ],
  [
    "a header of an unknown type",
    match({ headers: [{ type: "Prefix", name: "X-A", value: "1" }] }),
    ["rules[0].matches[0].headers[0].type"],
  ],
  ["a parameter", match({ queryParams: [{ name: "a", value: "1" }] }), []],
  [
    "parameters that differ in case",
    match({
      queryParams: [
        { name: "a", value: "1" },
        { name: "A", value: "1" },
      ],
    }),
    [],
  ],
  [
    "a parameter's name with =",
    match({ queryParams: [{ name: "a=b", value: "1" }] }),
    ["rules[0].matches[0].query_params[0].name"],
  ],
  [
    "a parameter without a name",
    match({ queryParams: [{ value: "1" }] }),
    ["rules[0].matches[0].query_params[0].name"],
  ],
  ["a method", match({ method: "GET" }), []],
  ["a method in small letters", match({ method: "get" }), ["rules[0].matches[0].method"]],
]);

const AT = "rules[0].filters[0]";

describeSpec("route", "filter", [
  ["an empty filter", rule({ filters: [{}] }), [AT]],
  [
    "headers",
    filter("requestHeaderModifier", { set: { "X-A": "1" }, add: { "X-B": "2" }, remove: ["X-C"] }),
    [],
  ],
  [
    "a header's value of two lines",
    filter("responseHeaderModifier", { set: { "X-A": "1\r\nX: 2" } }),
    [`${AT}.response_header_modifier.set[X-A]`],
  ],
  [
    "a header's name with a space",
    filter("requestHeaderModifier", { add: { "X A": "1" } }),
    [`${AT}.request_header_modifier.add[X A]`],
  ],
  [
    "a header that can't be removed",
    filter("requestHeaderModifier", { remove: ["Host"] }),
    [`${AT}.request_header_modifier.remove[0]`],
  ],
  [
    "a header both set and removed",
    filter("requestHeaderModifier", { set: { "X-A": "1" }, remove: ["x-a"] }),
    [`${AT}.request_header_modifier.remove[0]`],
  ],
  [
    "17 removed headers",
    filter("requestHeaderModifier", { remove: Array.from({ length: 17 }, (_, i) => `X-${i}`) }),
    [`${AT}.request_header_modifier.remove`],
  ],
  ["a redirect", filter("requestRedirect", { scheme: "https", statusCode: 301 }), []],
  ["a redirect to itself", filter("requestRedirect", { statusCode: 301 }), [`${AT}.request_redirect`]],
  [
    "a redirect with status 200",
    filter("requestRedirect", { path: "/", statusCode: 200 }),
    [`${AT}.request_redirect.status_code`],
  ],
  [
    "a redirect to another scheme",
    filter("requestRedirect", { scheme: "ftp" }),
    [`${AT}.request_redirect.scheme`],
  ],
  [
    "a redirect to a wildcard",
    filter("requestRedirect", { hostname: "*.a.b" }),
    [`${AT}.request_redirect.hostname`],
  ],
  ["a redirect to port 65536", filter("requestRedirect", { port: 65_536 }), [`${AT}.request_redirect.port`]],
  [
    "a redirect to a relative path",
    filter("requestRedirect", { path: "a" }),
    [`${AT}.request_redirect.path`],
  ],
  [
    "a redirect beside backends",
    filter("requestRedirect", { path: "/" }, { backends: [BACKEND] }),
    ["rules[0].backends"],
  ],
  ["a rewritten host", filter("urlRewrite", { hostname: "www.example.com" }), []],
  [
    "a rewritten prefix",
    filter("urlRewrite", { path: { value: "/" } }, { matches: [{ path: { value: "/v1" } }] }),
    [],
  ],
  [
    "a rewrite to an address",
    filter("urlRewrite", { hostname: "192.0.2.1" }),
    [`${AT}.url_rewrite.hostname`],
  ],
  ["a rewrite of nothing", filter("urlRewrite", {}), [`${AT}.url_rewrite`]],
  [
    "a rewrite by an expression",
    filter("urlRewrite", { path: { type: "RegularExpression", value: "/a" } }),
    [`${AT}.url_rewrite.path.type`],
  ],
  [
    "a rewritten prefix of an exact match",
    filter("urlRewrite", { path: { value: "/a" } }, { matches: [{ path: { type: "Exact", value: "/b" } }] }),
    [`${AT}.url_rewrite.path.type`],
  ],
  [
    "a rewrite to nothing",
    filter("urlRewrite", { path: { type: "Exact" } }),
    [`${AT}.url_rewrite.path.value`],
  ],
  [
    "two mirrors",
    rule({
      filters: Array.from({ length: 2 }, () => ({ filter: { $case: "requestMirror", value: BACKEND } })),
    }),
    [],
  ],
  ["a mirror without a port", filter("requestMirror", { service: "a" }), [`${AT}.request_mirror.port`]],
  ["a mirror without a service", filter("requestMirror", { port: 80 }), [`${AT}.request_mirror.service`]],
  [
    "two rewrites",
    rule({
      filters: Array.from({ length: 2 }, () => ({
        filter: { $case: "urlRewrite", value: { hostname: "a.b" } },
      })),
    }),
    ["rules[0].filters[1]"],
  ],
  [
    "a rewrite and a redirect",
    rule({
      filters: [
        { filter: { $case: "requestRedirect", value: { path: "/" } } },
        { filter: { $case: "urlRewrite", value: { hostname: "a.b" } } },
      ],
    }),
    ["rules[0].filters[1]"],
  ],
  [
    "17 filters",
    rule({
      filters: Array.from({ length: 17 }, () => ({ filter: { $case: "requestMirror", value: BACKEND } })),
    }),
    ["rules[0].filters"],
  ],
]);
