import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HeldRecords } from "../src/load-balancer/held-addresses-file.ts";

const ONE = { ip: "192.0.2.1", interface: "eth0" };
const TWO = { ip: "192.0.2.1", interface: "eth1" };
const OTHER = { ip: "192.0.2.2", interface: "eth0" };

/** Tests the contract of the records of addresses that the agent has added to the host. */
export function testHeldRecords(name: string, open: (t: TestContext) => Promise<HeldRecords>): void {
  test(`${name}: an address is held on its interface until it is removed`, async (t) => {
    const records = await open(t);
    assert.deepEqual([records.held, records.has(ONE)], [[], false]);
    await records.add([ONE, TWO]);
    assert.deepEqual(records.held, [ONE, TWO]);
    assert.deepEqual(
      [ONE, TWO, OTHER].map((it) => records.has(it)),
      [true, true, false],
    );
    await records.remove(ONE);
    assert.deepEqual([records.held, records.has(ONE)], [[TWO], false]);
  });

  test(`${name}: adding an address again and removing an absent one change nothing`, async (t) => {
    const records = await open(t);
    await records.add([ONE]);
    await records.add([OTHER, ONE]);
    assert.deepEqual(records.held, [ONE, OTHER]);
    await records.remove(TWO);
    await records.check();
    assert.deepEqual(records.held, [ONE, OTHER]);
  });
}
