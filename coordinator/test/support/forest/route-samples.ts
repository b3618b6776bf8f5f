import type { SampleTable } from "./sample-table.ts";

const HEADERS = {
  set: [{ "X-A": "1" }, {}],
  add: [{ "X-B": "2" }, {}],
  remove: ["X-C"],
};
const NAMED = { type: ["Exact", ""], value: ["1", "a b"] };

export const ROUTE_SAMPLES: SampleTable = {
  InlineRoute: { base: {}, values: { hostnames: ["api.example.com", "*.example.com"] } },
  RouteSpec: {
    base: { targetService: "web" },
    values: {
      target_service: ["web"],
      hostnames: ["api.example.com", "*.com"],
      gateway_ref: ["edge", ""],
      priority: [10, -10, 0],
    },
  },
  RouteRule: {
    base: {},
    values: {
      timeout: [
        { seconds: 5n, nanos: 0 },
        { seconds: 0n, nanos: 0 },
        { seconds: 86_400n, nanos: 0 },
      ],
    },
  },
  RouteMatch: { base: {}, values: { method: ["GET", "PURGE", ""] } },
  PathMatch: {
    base: { value: "/v1" },
    values: { type: ["Exact", "PathPrefix", ""], value: ["/v1", "/a/b%20c"] },
  },
  HeaderMatch: {
    base: { name: "X-Canary", value: "1" },
    values: { ...NAMED, name: ["X-Canary", "accept"] },
  },
  QueryParamMatch: {
    base: { name: "debug", value: "1" },
    values: { ...NAMED, name: ["debug", "filter[name]"] },
  },
  RouteBackend: {
    base: { service: "web", port: 80 },
    values: { service: ["web", "web-canary"], port: [80], weight: [10, 0, 100] },
  },
  RouteFilter: {
    base: { filter: { $case: "requestMirror", value: { service: "web", port: 80 } } },
    values: {},
  },
  RequestHeaderModifier: { base: {}, values: HEADERS },
  ResponseHeaderModifier: { base: {}, values: HEADERS },
  RequestRedirect: {
    base: { scheme: "https" },
    values: {
      scheme: ["https", "http"],
      hostname: ["www.example.com", ""],
      port: [8443, 0],
      path: ["/new", ""],
      status_code: [301, 308, 0],
    },
  },
  UrlRewrite: { base: { hostname: "www.example.com" }, values: { hostname: ["www.example.com"] } },
  RequestMirror: { base: { service: "shadow", port: 80 }, values: { service: ["shadow"], port: [80] } },
  RouteTls: {
    base: {},
    values: { mode: ["Terminate", ""], certificate_ref: ["example-com", ""] },
  },
};
