import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { CONTAINER } from "./forest/workload-samples.ts";
import { verdictOnResource } from "./verdict.ts";

/**
 * A test case: its name, the fields that it sets (in ts-proto's form), and the invalid paths within
 * the spec.
 */
export type SpecCase = readonly [what: string, fields: object, invalid: readonly string[]];

const KINDS = {
  container_service: { $case: "containerService", base: { container: CONTAINER } },
  service: { $case: "service", base: { target: "web", ports: [{ name: "http", port: 80 }] } },
  route: { $case: "route", base: { targetService: "web" } },
  job: { $case: "job", base: { container: CONTAINER } },
  cron_job: { $case: "cronJob", base: { schedule: "@hourly", container: CONTAINER } },
} as const;

/**
 * Tests the validation of one kind of resource, with the fields of each case merged into a valid
 * spec.
 */
export function describeSpec(kind: keyof typeof KINDS, name: string, cases: readonly SpecCase[]): void {
  const { $case, base } = KINDS[kind];
  describe(name, () => {
    for (const [what, fields, invalid] of cases) {
      test(`${invalid.length === 0 ? "accepts" : `refuses ${invalid.join(", ")} of`} ${what}`, () => {
        const spec = { $case, value: { ...base, ...fields } };
        const resource = ForageResource.fromPartial({ name: "web", spec } as object);
        const { code, violations, message } = verdictOnResource(resource);
        const paths = code === "INVALID" ? violations.map(({ field }) => field) : [];
        const prefix = `resources[0].${kind}.`;
        const found = paths.map((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : path));
        assert.deepEqual(found, invalid, message);
      });
    }
  });
}

/** Returns the fields merged into the main container of a valid spec. */
export function inContainer(fields: object): object {
  return { container: { ...CONTAINER, ...fields } };
}

export function inPodConfig(podConfig: object): object {
  return { podConfig };
}
