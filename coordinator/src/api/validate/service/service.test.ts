import { describeSpec } from "../../../../test/support/spec-cases.ts";

const SECONDS = "forage.dev/session-affinity-seconds";
const ANNOTATION = "forage.dev/load-balancer-ip";
const withAddress = (text: string, type = "LoadBalancer") => ({ type, annotations: { [ANNOTATION]: text } });
const PORT = { name: "http", port: 80 };
const ports = (...fields: readonly object[]) => ({
  ports: fields.map((f, index) => ({ name: `p${index}`, port: 80 + index, ...f })),
});

describeSpec("service", "service", [
  ["a port", {}, []],
  ["no target", { target: "" }, ["target"]],
  ["a target in another namespace", { target: "web.shop" }, ["target"]],
  ["every type", { type: "Headless" }, []],
  ["an unknown type", { type: "ExternalName" }, ["type"]],
  ["affinity for a minute", { sessionAffinity: "ClientIP", annotations: { [SECONDS]: "60" } }, []],
  [
    "affinity for ever",
    { sessionAffinity: "ClientIP", annotations: { [SECONDS]: "86401" } },
    [`annotations[${SECONDS}]`],
  ],
  [
    "affinity for no time",
    { sessionAffinity: "ClientIP", annotations: { [SECONDS]: "0" } },
    [`annotations[${SECONDS}]`],
  ],
  ["a time without affinity", { annotations: { [SECONDS]: "60" } }, [`annotations[${SECONDS}]`]],
  ["affinity without an address", { type: "Headless", sessionAffinity: "ClientIP" }, ["session_affinity"]],
  ["an unknown affinity", { sessionAffinity: "Cookie" }, ["session_affinity"]],
  ["no ports", { ports: [] }, ["ports"]],
  ["no ports, but headless", { ports: [], type: "Headless" }, []],
  ["101 ports", ports(...Array.from({ length: 101 }, () => ({}))), ["ports"]],
  ["port 0", { ports: [{ name: "", port: 0 }] }, ["ports[0].port"]],
  ["a target port above 65535", ports({ targetPort: 65_536 }), ["ports[0].target_port"]],
  ["an unknown protocol", ports({ protocol: "HTTP" }), ["ports[0].protocol"]],
  ["one port without a name", { ports: [{ port: 80 }] }, []],
  ["two ports, one without a name", { ports: [PORT, { port: 81 }] }, ["ports[1].name"]],
  ["two ports of one name", { ports: [PORT, { ...PORT, port: 81 }] }, ["ports[1].name"]],
  ["a name of 63 characters", ports({ name: "x".repeat(63) }), []],
  ["a name with a dot", ports({ name: "a.b" }), ["ports[0].name"]],
  ["a port twice", ports({ port: 80 }, { port: 80, protocol: "TCP" }), ["ports[1].port"]],
  ["a port for two protocols", ports({ port: 53 }, { port: 53, protocol: "UDP" }), []],
  ["a node port", { type: "NodePort", ...ports({ nodePort: 30_080 }) }, []],
  ["a node port of a ClusterIP service", ports({ nodePort: 30_080 }), ["ports[0].node_port"]],
  ["a node port above 65535", { type: "NodePort", ...ports({ nodePort: 65_536 }) }, ["ports[0].node_port"]],
  [
    "a node port twice",
    { type: "LoadBalancer", ...ports({ nodePort: 30_080 }, { nodePort: 30_080 }) },
    ["ports[1].node_port"],
  ],
  ["a load balancer's address", withAddress("192.0.2.1"), []],
  ["a load balancer's addresses of both families", withAddress("2001:DB8::1, 192.0.2.1"), []],
  ["two of one family", withAddress("192.0.2.1,192.0.2.2"), [`annotations[${ANNOTATION}]`]],
  ["a load balancer's name", withAddress("example.com"), [`annotations[${ANNOTATION}]`]],
  ["no address", withAddress(""), [`annotations[${ANNOTATION}]`]],
  [
    "a load balancer's address for a node port",
    withAddress("192.0.2.1", "NodePort"),
    [`annotations[${ANNOTATION}]`],
  ],
  ["an annotation's key with a space", { annotations: { "a b": "" } }, ["annotations[a b]"]],
  ["an annotation of somebody else's", { annotations: { "example.com/Owner": "anyone" } }, []],
  ["what it says of its endpoints", { annotations: { "forage.dev/opaque-ports": "5432,9000-9100" } }, []],
  [
    "an annotation for unknown properties of endpoints",
    { annotations: { "forage.dev/opaque-port": "5432" } },
    ["annotations[forage.dev/opaque-port]"],
  ],
  [
    "an invalid annotation for endpoints",
    { annotations: { "config.linkerd.io/opaque-ports": "70000" } },
    ["annotations[config.linkerd.io/opaque-ports]"],
  ],
  ["its own route", { inlineRoute: { hostnames: ["a.example.com"] } }, []],
  [
    "its own route with an address",
    { inlineRoute: { hostnames: ["192.0.2.1"] } },
    ["inline_route.hostnames[0]"],
  ],
  ["its own route without a port", { type: "Headless", ports: [], inlineRoute: {} }, ["inline_route"]],
]);
