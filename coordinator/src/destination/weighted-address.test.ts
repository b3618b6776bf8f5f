import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnnotations } from "./hints/annotations.ts";
import { weightedAddress } from "./weighted-address.ts";

const ADDRESS = { ip: { ip: { $case: "ipv4" as const, value: 1 } }, port: 20_000 };
const h2 = { protocol: { $case: "h2", value: {} }, opaqueTransport: undefined };
const opaque = { protocol: { $case: "opaque", value: {} }, opaqueTransport: undefined };

for (const [what, annotations, port, expected] of [
  ["no hint for an endpoint whose service has no annotations", {}, 80, undefined],
  ["an opaque port alone is no hint: there may be no proxy", {}, 5432, undefined],
  ["HTTP/2, if the service says so", { "forage.dev/protocol": "http2" }, 80, h2],
  ["HTTP/2 on one port only", { "forage.dev/protocol": "80=http2" }, 81, undefined],
  ["bytes, if the service says so", { "forage.dev/protocol": "opaque" }, 80, opaque],
  [
    "bytes through the proxy's own port",
    { "forage.dev/opaque-transport-port": "4143" },
    5432,
    { ...opaque, opaqueTransport: { inboundPort: 4143 } },
  ],
  ["the proxy's own port is for bytes only", { "forage.dev/opaque-transport-port": "4143" }, 80, undefined],
] as const) {
  test(what, () => {
    const { hints } = readAnnotations(annotations as Record<string, string>);
    assert.deepEqual(weightedAddress(ADDRESS, {}, hints, { port, name: "" }).protocolHint, expected);
  });
}

test("applies a pod's annotation of its port before lists of ports, and after the service's protocol", () => {
  const hintOf = (annotations: Record<string, string>, port: number, byPod: boolean) => {
    const { hints } = readAnnotations({ "forage.dev/opaque-transport-port": "4143", ...annotations });
    return weightedAddress(ADDRESS, {}, hints, { port, name: "" }, byPod).protocolHint?.protocol?.$case;
  };
  assert.equal(hintOf({}, 8080, true), "opaque");
  assert.equal(hintOf({}, 5432, false), undefined);
  assert.equal(hintOf({ "forage.dev/opaque-ports": "80" }, 80, false), undefined);
  assert.equal(hintOf({ "forage.dev/protocol": "http2" }, 80, true), "h2");
});

test("appends the requested port to an authority without a port", () => {
  const override = (text: string) => {
    const { hints } = readAnnotations({ "forage.dev/authority-override": text });
    return weightedAddress(ADDRESS, {}, hints, { port: 8080, name: "" }).authorityOverride?.authorityOverride;
  };
  assert.equal(override("web.example"), "web.example:8080");
  assert.equal(override("web.example:81"), "web.example:81");
});
