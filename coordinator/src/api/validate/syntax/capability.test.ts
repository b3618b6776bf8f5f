import assert from "node:assert/strict";
import { test } from "node:test";
import { describeRule } from "../../../../test/support/rules.ts";
import { capabilityProblem } from "./capability.ts";

describeRule("capabilityProblem", capabilityProblem, {
  valid: ["ALL", "NET_BIND_SERVICE", "SYS_ADMIN", "CHECKPOINT_RESTORE"],
  invalid: ["", "CAP_NET_RAW", "net_raw", "all", "NET_RAWW", "NET-RAW"],
});

test("suggests the name of a capability in the right notation", () => {
  assert.equal(capabilityProblem("cap_net_raw"), "must be written NET_RAW");
});
