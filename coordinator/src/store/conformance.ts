import { describe } from "node:test";
import { compactionCases } from "./conformance/compaction-cases.ts";
import type { StoreFactory } from "./conformance/fixture.ts";
import { leaseCases } from "./conformance/lease-cases.ts";
import { randomCases } from "./conformance/random-cases.ts";
import { readCases } from "./conformance/read-cases.ts";
import { txnCases } from "./conformance/txn-cases.ts";
import { watchCases } from "./conformance/watch-cases.ts";

export type { StoreFactory } from "./conformance/fixture.ts";

/** Declares the tests that every engine must pass, with node:test. */
export function conformance(engine: string, open: StoreFactory): void {
  describe(`${engine} store`, () => {
    describe("reads", () => readCases(open));
    describe("transactions", () => txnCases(open));
    describe("watches", () => watchCases(open));
    describe("leases", () => leaseCases(open));
    describe("compaction", () => compactionCases(open));
    describe("random histories", () => randomCases(open));
  });
}
