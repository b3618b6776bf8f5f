import { linkSignals } from "@forage/common/link-signals";
import { messageOf as textOf } from "@forage/common/message-of";
import type { Clock } from "../time/clock.ts";
import { type Message, signatureOf } from "./message.ts";

/**
 * The outcome of one attempt. `refused` means that a retry of the same message would be refused as
 * well.
 */
export type PostResult =
  | { readonly type: "delivered" }
  | { readonly type: "refused" | "failed"; readonly reason: string };

export interface PostTo {
  readonly url: string;
  readonly readKey: () => Promise<Uint8Array>;
  readonly clock: Pick<Clock, "nowMs" | "schedule">;
}

const TIMEOUT_MS = 10_000;
/** The 4xx statuses after which a retry is useful. */
const PASSING = new Set([408, 425, 429]);

/** Posts the message once. The answer's body is not read, and redirects are not followed. */
export async function post(
  { id, body }: Message,
  { url, readKey, clock }: PostTo,
  signal: AbortSignal,
): Promise<PostResult> {
  const late = new AbortController();
  const cancel = clock.schedule(TIMEOUT_MS, () => late.abort());
  const either = linkSignals(signal, late.signal);
  try {
    const key = await readKey();
    const response = await fetch(url, {
      method: "POST",
      redirect: "manual",
      headers: {
        "content-type": "application/json",
        "user-agent": "forage-coordinator",
        "forage-delivery": id,
        "forage-signature": signatureOf(body, key, clock.nowMs()),
      },
      body,
      signal: either.signal,
    });
    await response.body?.cancel();
    return resultOf(response.status);
  } catch (error) {
    const reason = late.signal.aborted ? `no answer within ${TIMEOUT_MS / 1_000} s` : textOf(causeOf(error));
    return { type: "failed", reason };
  } finally {
    cancel();
    either.unlink();
  }
}

function resultOf(status: number): PostResult {
  if (status >= 200 && status < 300) return { type: "delivered" };
  const reason = `HTTP ${status}`;
  return status >= 300 && status < 500 && !PASSING.has(status)
    ? { type: "refused", reason }
    : { type: "failed", reason };
}

/**
 * Returns the cause of an error, because the message of `fetch` itself only states that it failed.
 */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error;
}
