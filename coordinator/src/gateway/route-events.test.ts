import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "./conditions.ts";
import { routeEvents } from "./route-events.ts";

test("names the resolved problem in an event", () => {
  const wrong = aCondition({
    status: false,
    reason: "SecretMissing",
    message: 'secret "tls" does not exist',
  });
  const [event] = routeEvents(ROUTE, [wrong], [aCondition({ status: true })]);
  assert.equal(event?.type, "Normal");
  assert.equal(event?.reason, "CertificateReady");
  assert.equal(event?.message, 'resolved: secret "tls" does not exist');
});

test("names a new problem in an event", () => {
  const wrong = aCondition({ status: false, reason: "SecretMissing", message: "no secret" });
  const [event] = routeEvents(ROUTE, [], [wrong]);
  assert.deepEqual([event?.type, event?.reason, event?.message], ["Warning", "SecretMissing", "no secret"]);
});

const ROUTE = { kind: "route", namespace: "shop", name: "site" } as const;

function aCondition(parts: Partial<Condition>): Condition {
  return { type: "CertificateReady", status: true, reason: "", message: "", ...parts };
}
