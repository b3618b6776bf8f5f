import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { AddressedLink } from "./connected-networks.ts";
import { type AddressPlanInput, type AddressStep, planAddresses } from "./plan-addresses.ts";

const IP = "192.0.2.50";
const bare = [link("eth0", "192.0.2.7/24"), link("eth1", "198.51.100.7/24")];
const holding = [link("eth0", "192.0.2.7/24", `${IP}/32`), link("eth1", "198.51.100.7/24")];
const DESIRED = [{ ip: IP, alone: false }];
const HELD = [{ ip: IP, interface: "eth0" }];

describe("plans the steps for a host's addresses", () => {
  for (const [what, fields, expected, problem] of [
    ["none", {}, []],
    ["a new one", { desired: DESIRED }, [`hold ${IP} eth0 for 30 s, new`]],
    [
      "a new one that no other node could take",
      { desired: [{ ip: IP, alone: true }] },
      [`hold ${IP} eth0, new`],
    ],
    ["one that it has", { desired: DESIRED, held: HELD, links: holding }, [`hold ${IP} eth0 for 30 s`]],
    [
      "one that someone took off the interface",
      { desired: DESIRED, held: HELD },
      [`hold ${IP} eth0 for 30 s, new`],
    ],
    ["one that goes elsewhere", { held: HELD, links: holding }, [`drop ${IP} eth0`]],
    ["one that is gone already", { held: HELD }, [`forget ${IP} eth0`]],
    [
      "one that another host has by now",
      { desired: DESIRED, held: HELD, links: holding, yielded: new Set([IP]) },
      [`drop ${IP} eth0`],
    ],
    [
      "one for which the operator names another interface",
      { desired: DESIRED, held: HELD, links: holding, interface: "eth1" },
      [`drop ${IP} eth0`, `hold ${IP} eth1 for 30 s, new`],
    ],
    [
      "one of no network of its own",
      { desired: [{ ip: "203.0.113.1", alone: false }] },
      [],
      /loadBalancer\.interface/,
    ],
    ["one that is the host's own", { desired: DESIRED, links: holding }, [], /as its own/],
    [
      "one that is the host's own, beside one that the agent has added",
      {
        desired: DESIRED,
        held: [{ ip: "192.0.2.51", interface: "eth0" }],
        links: [link("eth0", "192.0.2.7/24", `${IP}/32`, "192.0.2.51/32")],
      },
      ["drop 192.0.2.51 eth0"],
      /as its own/,
    ],
    ["a new one before the rules are there", { desired: DESIRED, started: false }, []],
    [
      "one that it has, before that",
      { desired: DESIRED, held: HELD, links: holding, started: false },
      [`hold ${IP} eth0 for 30 s`],
    ],
    ["one that it had before a reboot, before that", { desired: DESIRED, held: HELD, started: false }, []],
    [
      "one that went elsewhere, before that",
      { held: HELD, links: holding, started: false },
      [`drop ${IP} eth0`],
    ],
  ] as const) {
    test(what, () => {
      const { steps, problems } = planAddresses(input(fields));
      assert.deepEqual(steps.map(textOf), expected);
      if (problem === undefined) assert.deepEqual(problems, []);
      else assert.match(problems.join(), problem);
    });
  }
});

function input(fields: Partial<AddressPlanInput>): AddressPlanInput {
  return {
    desired: [],
    held: [],
    links: bare,
    interface: undefined,
    yielded: new Set(),
    started: true,
    ...fields,
  };
}

function textOf(step: AddressStep): string {
  const at = `${step.held.ip} ${step.held.interface}`;
  if (step.type === "drop") return `${step.present ? "drop" : "forget"} ${at}`;
  const lease = step.leaseSeconds === undefined ? "" : ` for ${step.leaseSeconds} s`;
  return `hold ${at}${lease}${step.isNew ? ", new" : ""}`;
}

function link(ifname: string, ...addresses: readonly string[]): AddressedLink {
  const addr_info = addresses.map((text) => {
    const [local = "", prefix] = text.split("/");
    return { family: "inet", local, prefixlen: Number(prefix) };
  });
  return { ifname, addr_info };
}
