import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ConnectResponse } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { aNode, aServiceEntry } from "../../test/support/entries.ts";
import { aRouteRecord, entryOf } from "../../test/support/gateway/a-route.ts";
import { secretsOf } from "../../test/support/gateway/secrets.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { poison } from "../../test/support/poison.ts";
import { noCertificateSource } from "./certificate-source.ts";
import { GatewayTable } from "./gateway-table.ts";

for (const [what, harm] of [
  ["read", (record: ResourceRecord) => poison(record, "resource")],
  ["compiled", (record: ResourceRecord) => poison(ruleOf(record), "matches")],
] as const) {
  test(`omits and reports a route that can't be ${what}, and serves the others`, () => {
    const fed = new HandFedState({
      nodes: [aNode({ name: "g1", labels: { "forage.dev/gateway": "" } })],
      resources: [aServiceEntry({ name: "web" })],
    });
    // This listener runs before that of the table.
    fed.state.subscribe((changes) => {
      for (const { type, after } of changes)
        if (type === "resource" && after?.record.name === "bad") harm(after.record);
    });
    const events: string[] = [];
    const table = new GatewayTable({
      state: fed.state,
      vault: secretsOf().vault,
      source: noCertificateSource(),
      events: { record: ({ kind, name, reason }) => void events.push(`${kind} ${name} ${reason}`) },
      clock: new VirtualClock(),
      defer: (run) => run(),
    });
    const spec = (name: string) => ({ hostnames: [`${name}.org`], rules: [{}] });
    const routes = ["a", "bad", "z"].map((name) => aRouteRecord({ name, spec: spec(name) }));
    fed.put({ resources: routes.map(entryOf) });
    assert.deepEqual(hostsOf(table), ["a.org", "z.org"]);
    assert.deepEqual(
      events.filter((event) => event.endsWith("ReconcileFailed")),
      ["route bad ReconcileFailed"],
    );
  });
}

/** Returns the hostnames that a newly connected gateway receives. */
function hostsOf(table: GatewayTable): string[] {
  const { reader } = table.open("g1", () => {});
  return [...reader.due()].flatMap((bytes) => {
    const { message } = ConnectResponse.decode(bytes);
    return message?.$case === "gateway" ? message.value.hosts.map(({ hostname }) => hostname) : [];
  });
}

function ruleOf({ resource }: ResourceRecord): object | undefined {
  return resource?.spec?.$case === "route" ? resource.spec.value.rules[0] : undefined;
}
