import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { CA_LIFETIME_MS, CertificateAuthority } from "@forage/identity/ca";
import { authorityTimeProblem } from "./identity.ts";

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;

test("reports an authority that is expired or not yet valid with the remedy", async () => {
  const { certPem } = await CertificateAuthority.create("test", { nowMs: () => NOW_MS, randomBytes });
  assert.equal(authorityTimeProblem(certPem, NOW_MS), undefined);
  assert.equal(authorityTimeProblem(certPem, NOW_MS - HOUR_MS), undefined, "certificates are backdated");
  assert.match(
    authorityTimeProblem(certPem, NOW_MS - 3 * HOUR_MS) ?? "",
    /valid only from \S+ on.*Set the clock if it is behind/,
  );
  assert.match(
    authorityTimeProblem(certPem, NOW_MS + CA_LIFETIME_MS + HOUR_MS) ?? "",
    /valid until \S+.*set the clock/,
  );
});
