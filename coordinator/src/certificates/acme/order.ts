import type { GatewayChallenge } from "@forage/proto/forage/agent/v1/agent";
import type { Authorization, Order } from "acme-client";
import type { Clock } from "../../time/clock.ts";
import { IssueError } from "../issue-error.ts";
import type { AcmeClient } from "./client.ts";
import { createKeyAndRequest } from "./csr.ts";
import { type Problem, problemText } from "./problem.ts";

/** Publishes answers to the authority's challenges. */
export interface Challenges {
  post(challenge: GatewayChallenge, signal: AbortSignal): Promise<void>;
  takeDown(token: string): void;
}

export interface OrderOptions {
  readonly acme: AcmeClient;
  readonly challenges: Challenges;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * The time limit for a decision of the authority. Validations take seconds, or minutes if the
 * authority is busy.
 */
const POLL_LIMIT_MS = 4 * 60_000;
const FIRST_POLL_MS = 500;
const MAX_POLL_MS = 10_000;

/** Runs one order until its certificate is issued (RFC 8555, section 7.4). Throws IssueError. */
export async function runOrder(
  hostname: string,
  options: OrderOptions,
): Promise<{ readonly chainPem: string; readonly keyPem: string }> {
  const { client } = options.acme;
  const order = await client.createOrder({ identifiers: [{ type: "dns", value: hostname }] });
  for (const authorization of await client.getAuthorizations(order))
    if (authorization.status !== "valid") await prove(hostname, order, authorization, options);
  const ready = await poll(options, async () =>
    settledOrder(await client.getOrder(order), ["ready", "valid"]),
  );
  const { keyPem, csrPem } = await createKeyAndRequest(hostname);
  await client.finalizeOrder(ready, csrPem);
  const valid = await poll(options, async () => settledOrder(await client.getOrder(order), ["valid"]));
  return { chainPem: await client.getCertificate(valid), keyPem };
}

async function prove(
  hostname: string,
  order: Order,
  authorization: Authorization,
  options: OrderOptions,
): Promise<void> {
  const { acme, challenges, signal } = options;
  const challenge = authorization.challenges.find(({ type }) => type === "http-01");
  if (challenge === undefined)
    throw new IssueError(`the authority offers no HTTP-01 challenge for ${hostname}`, { blame: "hostname" });
  const { token } = challenge;
  // The token becomes part of a path.
  if (!/^[A-Za-z0-9_-]{1,256}$/.test(token))
    throw new IssueError("the authority's challenge token is malformed", { blame: "issuer" });
  const keyAuthorization = await acme.client.getChallengeKeyAuthorization(challenge);
  try {
    await challenges.post({ hostname, token, keyAuthorization }, signal);
    await acme.client.completeChallenge(challenge);
    await poll(options, async () => {
      const all = await acme.client.getAuthorizations(order);
      return settledAuthorization(all.find(({ url }) => url === authorization.url));
    });
  } finally {
    challenges.takeDown(token);
  }
}

/**
 * Returns true if the authorization is valid, and undefined while it is pending. Throws IssueError
 * with the authority's reason if it failed.
 */
function settledAuthorization(authorization: Authorization | undefined): true | undefined {
  if (authorization?.status === "valid") return true;
  if (authorization?.status === "pending") return undefined;
  const failure = authorization?.challenges.find(({ error }) => error !== undefined && error !== null);
  const status = authorization?.status ?? "gone";
  throw new IssueError(
    problemText(failure?.error as Problem | undefined, `the authority's validation is ${status}`),
    { blame: "hostname" },
  );
}

function settledOrder(order: Order, expected: readonly Order["status"][]): Order | undefined {
  if (expected.includes(order.status)) return order;
  if (order.status !== "invalid") return undefined;
  const text = problemText(order.error as Problem | undefined, "the authority rejected the order");
  throw new IssueError(text, { blame: "hostname" });
}

/**
 * Polls at increasing intervals until there is a result, and never earlier than the authority
 * requested.
 */
async function poll<T>({ acme, clock, signal }: OrderOptions, ask: () => Promise<T | undefined>): Promise<T> {
  const untilMs = clock.monotonicMs() + POLL_LIMIT_MS;
  for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(waitMs * 2, MAX_POLL_MS)) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    const pauseMs = Math.max(waitMs, acme.retryAfterMs() ?? 0);
    if (clock.monotonicMs() + pauseMs > untilMs)
      throw new IssueError(`the authority has not decided within ${POLL_LIMIT_MS / 60_000} minutes`, {
        blame: "hostname",
      });
    await pause(pauseMs, clock, signal);
  }
}

function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.schedule(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}
