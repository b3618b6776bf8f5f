import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { openVault } from "../../objects/open-vault.ts";
import { createMemoryStore } from "../../store/index.ts";
import { IssueError } from "../issue-error.ts";
import { AccountRecords } from "./account.ts";
import { AcmeIssuer } from "./issuer.ts";
import type { AcmeResponse } from "./transport.ts";

const BASE = "https://acme.test";
const JSON_HEADERS = { "content-type": "application/json", "replay-nonce": "n1" };
const DIRECTORY = { newNonce: `${BASE}/nonce`, newAccount: `${BASE}/account`, newOrder: `${BASE}/order` };
const problem = (type: string, detail: string): string =>
  JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail });

type Answers = Readonly<Record<string, Partial<AcmeResponse> | Error>>;

/**
 * Starts an authority that succeeds except where `answers` overrides it. All orders end at
 * `/order`.
 */
async function start(answers: Answers) {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const vault = await openVault([{ id: "k", bytes: randomBytes(32) }], store);
  const requests: string[] = [];
  const bodies: string[] = [];
  const all: Answers = {
    "/": { body: JSON.stringify(DIRECTORY) },
    "/nonce": { status: 204 },
    "/account": { status: 201, body: "{}", headers: { ...JSON_HEADERS, location: `${BASE}/account/1` } },
    ...answers,
  };
  const issuer = new AcmeIssuer({
    directory: `${BASE}/`,
    email: "ops@example.com",
    externalAccount: undefined,
    accounts: new AccountRecords({ store, vault, directory: `${BASE}/` }),
    challenges: { post: async () => {}, takeDown: () => {} },
    transport: async ({ url, method, body }) => {
      const { pathname } = new URL(url);
      requests.push(`${method.toLowerCase()} ${pathname}`);
      bodies.push(body ?? "");
      const answer = all[pathname] ?? { status: 404 };
      if (answer instanceof Error) throw answer;
      return { status: 200, headers: JSON_HEADERS, body: "", ...answer };
    },
    clock,
  });
  const issue = (): Promise<unknown> => issuer.issue("a.test", new AbortController().signal);
  return { issue, requests, bodies, store };
}

async function failure(issue: () => Promise<unknown>): Promise<IssueError> {
  try {
    await issue();
  } catch (error) {
    if (error instanceof IssueError) return error;
    throw error;
  }
  throw new Error("it was to fail");
}

const orders = (requests: readonly string[]): number => requests.filter((it) => it === "post /order").length;

test("reports the requested delay after too many orders, and does not repeat the orders", async () => {
  const { issue, requests } = await start({
    "/order": {
      status: 429,
      headers: { ...JSON_HEADERS, "retry-after": "3600" },
      body: problem("rateLimited", "too many new orders"),
    },
  });
  const error = await failure(issue);
  assert.deepEqual(
    [error.blame, error.retryAfterMs, error.message],
    ["rate", 3_600_000, "rateLimited: too many new orders"],
  );
  assert.equal(orders(requests), 1);
});

test("counts an answer of a busy authority against the authority, without a retry", async () => {
  const { issue, requests } = await start({
    "/order": {
      status: 503,
      headers: { "retry-after": "60" },
      body: "<html><b>Service busy</b>\n<p>try later</html>",
    },
  });
  const error = await failure(issue);
  assert.deepEqual(
    [error.blame, error.retryAfterMs, error.message],
    ["issuer", 60_000, "Service busy try later"],
  );
  assert.equal(orders(requests), 1);
});

test("counts an unsupported hostname against the hostname", async () => {
  const { issue } = await start({
    "/order": { status: 400, body: problem("rejectedIdentifier", "not a.test") },
  });
  const error = await failure(issue);
  assert.deepEqual([error.blame, error.message], ["hostname", "rejectedIdentifier: not a.test"]);
});

test("retries a rejected nonce a few times with the nonce in the rejection", async () => {
  const { issue, requests, bodies } = await start({
    "/order": {
      status: 400,
      headers: { ...JSON_HEADERS, "replay-nonce": "n2" },
      body: problem("badNonce", "no"),
    },
  });
  const error = await failure(issue);
  assert.equal(error.blame, "issuer");
  assert.equal(orders(requests), 6);
  const nonces = bodies.slice(-6).map((body) => {
    const { protected: header } = JSON.parse(body) as { protected: string };
    return (JSON.parse(Buffer.from(header, "base64url").toString()) as { nonce: string }).nonce;
  });
  assert.deepEqual(nonces, ["n1", "n2", "n2", "n2", "n2", "n2"]);
});

test("counts answers that violate ACME against the authority", async () => {
  const odd: readonly Answers[] = [
    { "/": { body: "<html>hello</html>", headers: { "content-type": "text/html" } } },
    { "/": { body: "{}" } },
    { "/": { body: "" } },
    { "/": { status: 404 } },
    { "/nonce": { headers: {} } },
    { "/order": { body: "[]" } },
    { "/order": { body: "{", headers: JSON_HEADERS } },
  ];
  for (const answers of odd) {
    const error = await failure((await start(answers)).issue);
    assert.ok(error.message.length > 10 && error.message.length <= 500, JSON.stringify(answers));
    assert.equal(error.blame, "issuer", error.message);
  }
});

test("counts a refused account against no hostname", async () => {
  const { issue, requests } = await start({
    "/account": { status: 403, body: problem("unauthorized", "account is deactivated") },
  });
  const error = await failure(issue);
  assert.deepEqual(
    [error.blame, error.message],
    ["issuer", "no account with the authority: unauthorized: account is deactivated"],
  );
  assert.equal(orders(requests), 0);
});

test("registers one account for concurrent orders", async () => {
  const { issue, requests } = await start({ "/order": { status: 400, body: problem("dns", "no") } });
  await Promise.all([failure(issue), failure(issue), failure(issue)]);
  assert.equal(requests.filter((it) => it === "post /account").length, 1);
});
