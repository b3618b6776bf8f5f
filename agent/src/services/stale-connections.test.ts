import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServicePortRules } from "./port-rules.ts";
import { staleConnections } from "./stale-connections.ts";

type Rule = Partial<Omit<ServicePortRules, "endpoints">> & { readonly to: readonly string[] };

for (const [what, from, to, expected] of [
  ["nothing has gone", { to: ["10.0.0.1:80"] }, { to: ["10.0.0.1:80", "10.0.0.2:80"] }, []],
  [
    "a pod has gone: its half-open connections",
    { to: ["10.0.0.1:80", "10.0.0.2:80"] },
    { to: ["10.0.0.2:80"] },
    ["-p tcp --state SYN_SENT --reply-src 10.0.0.1 --reply-port-src 80"],
  ],
  [
    "the service has gone, and a host with it",
    { to: ["10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80"] },
    undefined,
    [
      "-p tcp --state SYN_SENT --reply-src 10.0.0.1",
      "-p tcp --state SYN_SENT --reply-src 10.0.0.2 --reply-port-src 80",
    ],
  ],
  [
    "many have gone: one walk for all",
    { to: Array.from({ length: 9 }, (_, index) => `10.0.0.${index}:80`) },
    undefined,
    ["-p tcp --state SYN_SENT --dst-nat"],
  ],
  [
    "by UDP all connections of the service, whichever way they came",
    { protocol: "udp", nodePort: "udp . 30053", to: ["10.0.0.1:53", "10.0.0.2:53"] },
    { protocol: "udp", nodePort: "udp . 30053", to: ["10.0.0.1:53"] },
    ["-p udp --orig-dst 10.96.0.5 --orig-port-dst 80", "-p udp --orig-port-dst 30053"],
  ],
] as const satisfies readonly (readonly [string, Rule, Rule | undefined, readonly string[]])[]) {
  test(`finds stale connections when ${what}`, () => {
    const desired = to === undefined ? new Map() : new Map([["web", rule(to)]]);
    const found = staleConnections(new Map([["web", rule(from)]]), desired);
    assert.deepEqual(
      found.map((match) => match.join(" ")),
      expected,
    );
  });
}

function rule({ to, ...fields }: Rule): ServicePortRules {
  return {
    family: 4,
    id: "web",
    protocol: "tcp",
    addresses: ["10.96.0.5 . tcp . 80"],
    nodePort: undefined,
    affinitySeconds: 0,
    ...fields,
    endpoints: to.map((text) => {
      const [address = "", port] = text.split(":");
      return { id: text, address, port: Number(port) };
    }),
  };
}
