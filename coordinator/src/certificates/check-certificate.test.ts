import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { checkedCertificate } from "./check-certificate.ts";
import { createAuthority, signLeaf } from "./self-signed/authority.ts";

const options = { nowMs: 1_700_000_000_000, randomBytes };
const authority = await createAuthority("test", options);
const good = await signLeaf(authority, "a.test", options);
const other = await signLeaf(authority, "b.test", options);

test("accepts a matching certificate with its own validity, and drops surrounding text", () => {
  const chainPem = `subject=somebody\n${good.chainPem}\ntrailing words`;
  const checked = checkedCertificate("A.test", { ...good, chainPem }, options.nowMs);
  assert.deepEqual(checked, good);
});

test("refuses certificates that gateways could not serve, with the reason", () => {
  const bad: readonly (readonly [string, { chainPem: string; keyPem: string }, RegExp, number?])[] = [
    ["another name", { ...other, keyPem: other.keyPem }, /for DNS:b\.test/],
    ["another key", { ...good, keyPem: other.keyPem }, /for another key/],
    ["none", { ...good, chainPem: "no certificate" }, /0 certificates/],
    ["too many", { ...good, chainPem: good.chainPem.repeat(6) }, /12 certificates/],
    [
      "rubbish",
      { ...good, chainPem: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" },
      /can't be read/,
    ],
    ["ended", good, /expired at .*clock right/, good.notAfterMs + 1],
  ];
  for (const [what, answer, message, nowMs = options.nowMs] of bad)
    assert.throws(
      () => checkedCertificate("a.test", answer, nowMs),
      (error: Error) => {
        assert.match(error.message, message, what);
        assert.ok(!error.message.includes("PRIVATE"));
        return error.name === "IssueError";
      },
    );
});
