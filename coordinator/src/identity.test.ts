import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { CA_LIFETIME_MS, CertificateAuthority } from "@forage/identity/ca";
import { authorityTimeProblem } from "./identity.ts";

const nowMs = 1_800_000_000_000;
const hourMs = 3_600_000;

test("an authority that is not yet valid or has expired is reported with the remedy", async () => {
  const { certPem } = await CertificateAuthority.create("test", { nowMs: () => nowMs, randomBytes });
  assert.equal(authorityTimeProblem(certPem, nowMs), undefined);
  assert.equal(authorityTimeProblem(certPem, nowMs - 60_000), undefined, "certificates are backdated");
  assert.match(
    authorityTimeProblem(certPem, nowMs - hourMs) ?? "",
    /valid only from \S+ on.*Set the clock if it is behind/,
  );
  assert.match(
    authorityTimeProblem(certPem, nowMs + CA_LIFETIME_MS + hourMs) ?? "",
    /valid until \S+.*set the clock/,
  );
});
