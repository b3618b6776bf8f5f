import assert from "node:assert/strict";
import { test } from "node:test";
import { read, testFields } from "../../test/field-table.ts";
import * as route from "./http-route-fields.ts";
import * as ingress from "./ingress-fields.ts";
import * as service from "./service-fields.ts";

testFields("Service", service.SERVICE_FIELDS, {
  allocateLoadBalancerNodePorts: ["true", "no effect"],
  clusterIP: ["None", { type: "Headless" }],
  clusterIPs: ["[None]", "no effect"],
  externalIPs: ["[10.0.0.1]", "lost"],
  externalName: ["a.example", "lost"],
  externalTrafficPolicy: ["Local", "lost"],
  healthCheckNodePort: ["30000", "no effect"],
  internalTrafficPolicy: ["Local", "lost"],
  ipFamilies: ["[IPv4]", "no effect"],
  ipFamilyPolicy: ["SingleStack", "no effect"],
  loadBalancerClass: ["a", "lost"],
  loadBalancerIP: ["10.0.0.1", { annotations: { "forage.dev/load-balancer-ip": "10.0.0.1" } }],
  loadBalancerSourceRanges: ["[10.0.0.0/8]", "lost"],
  ports: ["[{port: 80}]", { ports: [{ port: 80 }] }],
  publishNotReadyAddresses: ["true", "lost"],
  selector: ["{a: b}", "no effect"],
  sessionAffinity: ["ClientIP", { session_affinity: "ClientIP" }],
  sessionAffinityConfig: [
    "{clientIP: {timeoutSeconds: 60}}",
    { session_affinity_config: { annotations: { "forage.dev/session-affinity-seconds": "60" } } },
  ],
  trafficDistribution: ["PreferClose", "lost"],
  type: ["NodePort", { type: "NodePort" }],
});
testFields("service's port", service.SERVICE_PORT_FIELDS, {
  appProtocol: ["http", "lost"],
  name: ["a", { name: "a" }],
  nodePort: ["30080", { node_port: 30080 }],
  port: ["80", { port: 80 }],
  protocol: ["UDP", { protocol: "UDP" }],
  targetPort: ["http", { target_port: 8080 }],
});
testFields("affinity's configuration", service.AFFINITY_CONFIG_FIELDS, {
  clientIP: ["{timeoutSeconds: 60}", { annotations: { "forage.dev/session-affinity-seconds": "60" } }],
});
testFields("client's affinity", service.CLIENT_IP_FIELDS, {
  timeoutSeconds: ["60", { annotations: { "forage.dev/session-affinity-seconds": "60" } }],
});

test("reads every field of an Ingress and of its paths, and ignores the class", () => {
  const backend = "{service: {name: a}}";
  const { draft, problems, losses } = read(
    ingress.INGRESS_FIELDS,
    `{defaultBackend: ${backend}, ingressClassName: nginx, rules: [{host: a}], tls: [{secretName: a}]}`,
  );
  assert.deepEqual([problems, losses], [[], []]);
  assert.deepEqual(
    { ...draft, backend: undefined },
    {
      backend: undefined,
      rules: [{ host: "a" }],
      tls: [{ secret_name: "a" }],
    },
  );
  const path = read(ingress.INGRESS_PATH_FIELDS, `{backend: ${backend}, path: /, pathType: Exact}`).draft;
  assert.deepEqual({ ...path, backend: undefined }, { backend: undefined, path: "/", path_type: "Exact" });
  assert.deepEqual(Object.keys({ ...ingress.INGRESS_FIELDS, ...ingress.INGRESS_PATH_FIELDS }).sort(), [
    ...["backend", "defaultBackend", "ingressClassName", "path", "pathType", "rules", "tls"],
  ]);
});
testFields("ingress rule", ingress.INGRESS_RULE_FIELDS, {
  host: ["a.example", { host: "a.example" }],
  http: ["{paths: []}", { http: { paths: [] } }],
});
testFields("ingress TLS", ingress.INGRESS_TLS_FIELDS, {
  hosts: ["[a.example]", { hosts: ["a.example"] }],
  secretName: ["a", { secret_name: "a" }],
});
testFields("ingress backend", ingress.BACKEND_FIELDS, {
  resource: ["{kind: a}", "lost"],
  service: ["{name: a, port: {number: 80}}", { service: { name: "a", port: { number: 80 } } }],
});
testFields("backend's service", ingress.BACKEND_SERVICE_FIELDS, {
  name: ["a", { name: "a" }],
  port: ["{name: http}", { port: { name: "http" } }],
});
testFields("backend's port", ingress.BACKEND_PORT_FIELDS, {
  name: ["a", { name: "a" }],
  number: ["80", { number: 80 }],
});
testFields("paths of an ingress", ingress.INGRESS_HTTP_FIELDS, {
  paths: ["[{path: /}]", { paths: [{ path: "/" }] }],
});

const service80 = ["[{name: a, port: 80}]", { backend_refs: [{ service: "a", port: 80 }] }] as const;
testFields("HTTPRoute", route.HTTP_ROUTE_FIELDS, {
  hostnames: ["[a.example]", { hostnames: ["a.example"] }],
  parentRefs: ["[{name: public}]", { gateway_ref: "public" }],
  rules: ["[{backendRefs: [{name: a, port: 80}]}]", { rules: [service80[1]] }],
  useDefaultGateways: ["All", "no effect"],
});
testFields("reference to a gateway", route.PARENT_FIELDS, {
  group: ["gateway.networking.k8s.io", "no effect"],
  kind: ["Gateway", "no effect"],
  name: ["a", { name: "a" }],
  namespace: ["a", "no effect"],
  port: ["80", "lost"],
  sectionName: ["https", "lost"],
});
testFields("route's rule", route.ROUTE_RULE_FIELDS, {
  backendRefs: service80,
  filters: [
    "[{type: URLRewrite, urlRewrite: {hostname: a}}]",
    { filters: [{ url_rewrite: { hostname: "a" } }] },
  ],
  matches: ["[{method: GET}]", { matches: [{ method: "GET" }] }],
  name: ["a", "no effect"],
  retry: ["{attempts: 1}", "lost"],
  sessionPersistence: ["{type: Cookie}", "lost"],
  timeouts: ["{request: 500ms}", { timeouts: { request: "0.5s" } }],
});
testFields("set of time limits", route.TIMEOUTS_FIELDS, {
  backendRequest: ["5s", "lost"],
  request: ["1m30s", { request: "90s" }],
});
testFields("match", route.MATCH_FIELDS, {
  headers: ["[{name: a, value: b}]", { headers: [{ name: "a", value: "b" }] }],
  method: ["GET", { method: "GET" }],
  path: ["{type: Exact, value: /}", { path: { type: "Exact", value: "/" } }],
  queryParams: ["[{name: a, value: b}]", { query_params: [{ name: "a", value: "b" }] }],
});
testFields("path of a match", route.PATH_MATCH_FIELDS, {
  type: ["Exact", { type: "Exact" }],
  value: ["/", { value: "/" }],
});
testFields("header of a match", route.VALUE_MATCH_FIELDS, {
  name: ["a", { name: "a" }],
  type: ["Exact", { type: "Exact" }],
  value: ["a", { value: "a" }],
});
testFields("filter", route.FILTER_FIELDS, {
  cors: ["{maxAge: 5}", "lost"],
  extensionRef: ["{name: a}", "lost"],
  externalAuth: ["{protocol: HTTP}", "lost"],
  requestHeaderModifier: ["{remove: [a]}", { request_header_modifier: { remove: ["a"] } }],
  requestMirror: ["{backendRef: {name: a, port: 80}}", { request_mirror: { service: "a", port: 80 } }],
  requestRedirect: ["{scheme: https}", { request_redirect: { scheme: "https" } }],
  responseHeaderModifier: ["{add: [{name: a, value: b}]}", { response_header_modifier: { add: { a: "b" } } }],
  type: ["CORS", "no effect"],
  urlRewrite: ["{hostname: a}", { url_rewrite: { hostname: "a" } }],
});
testFields("change of headers", route.HEADER_MODIFIER_FIELDS, {
  add: ["[{name: a, value: b}]", { add: { a: "b" } }],
  remove: ["[a]", { remove: ["a"] }],
  set: ["[{name: a, value: b}]", { set: { a: "b" } }],
});
testFields("header's value", route.HEADER_VALUE_FIELDS, {
  name: ["a", { name: "a" }],
  value: ["a", { value: "a" }],
});
testFields("redirect", route.REDIRECT_FIELDS, {
  hostname: ["a", { hostname: "a" }],
  path: ["{type: ReplaceFullPath, replaceFullPath: /a}", { path: "/a" }],
  port: ["80", { port: 80 }],
  scheme: ["https", { scheme: "https" }],
  statusCode: ["301", { status_code: 301 }],
});
testFields("path of a redirect", route.REDIRECT_PATH_FIELDS, {
  replaceFullPath: ["/a", { path: "/a" }],
  replacePrefixMatch: ["/a", "lost"],
  type: ["ReplaceFullPath", "no effect"],
});
testFields("rewrite", route.REWRITE_FIELDS, {
  hostname: ["a", { hostname: "a" }],
  path: ["{replacePrefixMatch: /a}", { path: { type: "PathPrefix", value: "/a" } }],
});
testFields("path of a rewrite", route.REWRITE_PATH_FIELDS, {
  replaceFullPath: ["/a", { path: { type: "Exact", value: "/a" } }],
  replacePrefixMatch: ["/a", { path: { type: "PathPrefix", value: "/a" } }],
  type: ["ReplaceFullPath", "no effect"],
});
testFields("mirror", route.MIRROR_FIELDS, {
  backendRef: ["{name: a}", { service: "a" }],
  fraction: ["{numerator: 1}", "lost"],
  percent: ["5", "lost"],
});
const backend = {
  group: ["a.example", "lost"],
  kind: ["ServiceImport", "lost"],
  name: ["a", { service: "a" }],
  namespace: ["a", "lost"],
  port: ["80", { port: 80 }],
} as const;
testFields("mirror's backend", route.MIRROR_BACKEND_FIELDS, backend);
testFields("route's backend", route.ROUTE_BACKEND_FIELDS, {
  ...backend,
  filters: ["[{type: CORS}]", "lost"],
  weight: ["5", { weight: 5 }],
});
