import assert from "node:assert/strict";
import { test } from "node:test";
import { read } from "../../test/field-table.ts";
import * as container from "./container-fields.ts";
import { MIRROR_BACKEND_FIELDS, ROUTE_BACKEND_FIELDS } from "./http-route-fields.ts";
import { CLAIM_FIELDS } from "./object-fields.ts";
import { SPREAD_FIELDS } from "./placement-fields.ts";
import { POD_FIELDS } from "./pod-fields.ts";
import type { Rules } from "./rules.ts";
import { SERVICE_FIELDS } from "./service-fields.ts";
import { STATEFUL_STRATEGY_FIELDS } from "./workload-fields.ts";

/**
 * Fields whose value describes what Forage does anyway, so that the contract has no field for them.
 */
const DEFAULTS: readonly (readonly [Rules, Readonly<Record<string, string>>])[] = [
  [container.CONTAINER_SECURITY_FIELDS, { procMount: "Default" }],
  [container.POD_SECURITY_FIELDS, { supplementalGroupsPolicy: "Merge" }],
  [container.MOUNT_FIELDS, { mountPropagation: "None", recursiveReadOnly: "Disabled" }],
  [container.RESOURCE_REF_FIELDS, { divisor: "1" }],
  [container.RESOURCE_REF_FIELDS, { divisor: "0" }],
  [MIRROR_BACKEND_FIELDS, { group: '""', kind: "Service" }],
  [ROUTE_BACKEND_FIELDS, { group: '""', kind: "Service" }],
  [CLAIM_FIELDS, { volumeMode: "Filesystem" }],
  [SPREAD_FIELDS, { nodeAffinityPolicy: "Honor", nodeTaintsPolicy: "Ignore" }],
  [POD_FIELDS, { schedulerName: "default-scheduler" }],
  [SERVICE_FIELDS, { clusterIP: '""', externalTrafficPolicy: "Cluster", internalTrafficPolicy: "Cluster" }],
  [STATEFUL_STRATEGY_FIELDS, { type: "RollingUpdate" }],
];

for (const [rules, values] of DEFAULTS)
  for (const [name, value] of Object.entries(values))
    test(`leaves ${name}: ${value} out, without a remark`, () => {
      const plain = read(rules, "{}").draft;
      assert.deepEqual(read(rules, `{${name}: ${value}}`), { draft: plain, problems: [], losses: [] });
    });
