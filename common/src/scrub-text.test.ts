import assert from "node:assert/strict";
import { test } from "node:test";
import { scrubText } from "./scrub-text.ts";

const CANARY = "c4n4ryV4lue";

const SECRETS: readonly string[] = [
  `-----BEGIN EC PRIVATE KEY-----\n${CANARY}\n-----END EC PRIVATE KEY-----`,
  `{"key":"-----BEGIN PRIVATE KEY-----\\n${CANARY}`,
  `FLT1.${"a".repeat(43)}.0123456789ab.${CANARY}`,
  `FCT1.${"a".repeat(43)}.0123456789ab.${CANARY}`,
  `flt_0123456789ab_${CANARY}`,
  `Authorization: Bearer ${CANARY}`,
  `authorization: Basic ${CANARY}==`,
  `"authorization":"Bearer ${CANARY}"`,
  `https://user:${CANARY}@host.example/path`,
  `https://${CANARY}@git.example/a/b.git`,
  `GET /a?b=1&access_token=${CANARY}&c=2`,
  `https://bucket.example/o?X-Amz-Signature=${CANARY}`,
  `password=${CANARY}`,
  `DB_PASSWORD: "${CANARY}"`,
  `{"err":{"password":"${CANARY}"}}`,
  `"{\\"apiKey\\":\\"${CANARY}\\"}"`,
  `eyJ${CANARY}.${CANARY}.${CANARY}`,
];

for (const text of SECRETS)
  test(`removes the secret of ${text.replaceAll(CANARY, "…").slice(0, 50)}`, () => {
    const scrubbed = scrubText(`before ${text}`);
    assert.doesNotMatch(scrubbed, new RegExp(CANARY));
    assert.match(scrubbed, /^before .*\[left out\]/s);
  });

test("keeps text that only names a secret", () => {
  for (const text of [
    '{"kind":"secret","name":"db"}',
    '{"secretName":"db-login","tokenId":"0123456789ab"}',
    "secretKeyFile: /etc/forage/keys",
    "forage_token_uses_total 1500",
    "pod shop/web waits: https://registry.example/v2/: 503",
    "2026-01-01T10:20:30Z node a1 is unreachable",
  ])
    assert.equal(scrubText(text), text);
});

test("takes linear time for any text", () => {
  for (const part of ["a", "token", "a.", "://", "?key", "-----BEGIN PRIVATE KEY-----", "password:", "eyJ"])
    assert.ok(scrubText(part.repeat(1_000_000 / part.length)).length > 0);
});
