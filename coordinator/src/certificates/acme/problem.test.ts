import assert from "node:assert/strict";
import { test } from "node:test";
import { AcmeProblem, problemText, retryAfterMs } from "./problem.ts";

const type = (name: string): string => `urn:ietf:params:acme:error:${name}`;

test("describes a problem by the authority's text and that of its subproblems", () => {
  const subproblems = [{ detail: "a.test has no address" }, { detail: 5 }, null];
  const problem = { type: type("dns"), detail: "some names failed", subproblems };
  assert.equal(problemText(problem, "x"), "dns: some names failed; a.test has no address");
  assert.equal(problemText({ detail: "no" }, "x"), "no");
  assert.equal(problemText({ type: type("caa") }, "it was refused"), "caa: it was refused");
  for (const odd of [undefined, {}, { detail: 4 }, { type: "about:blank" }, { subproblems: "a" }])
    assert.equal(problemText(odd, "it was refused"), "it was refused");
});

test("attributes each problem to the rate limit, the issuer or the hostname", () => {
  const blame = (name: string, status: number) =>
    new AcmeProblem({ status, problem: { type: type(name) }, retryAfterMs: undefined }).blame;
  assert.equal(blame("rateLimited", 400), "rate");
  assert.equal(blame("other", 429), "rate");
  assert.equal(blame("serverInternal", 500), "issuer");
  assert.equal(blame("other", 503), "issuer");
  assert.equal(blame("accountDoesNotExist", 400), "issuer");
  for (const name of ["rejectedIdentifier", "unauthorized", "caa", "dns", "malformed"])
    assert.equal(blame(name, 400), "hostname");
});

test("parses Retry-After as seconds or as a date", () => {
  const nowMs = Date.parse("Sun, 06 Nov 1994 08:49:30 GMT");
  assert.equal(retryAfterMs("120", nowMs), 120_000);
  assert.equal(retryAfterMs("Sun, 06 Nov 1994 08:49:37 GMT", nowMs), 7_000);
  assert.equal(retryAfterMs("Sun, 06 Nov 1994 08:49:07 GMT", nowMs), 0, "a time that has passed");
  for (const odd of [undefined, "", "soon", "-5x"]) assert.equal(retryAfterMs(odd, nowMs), undefined);
});
