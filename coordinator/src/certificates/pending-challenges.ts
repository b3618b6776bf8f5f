import type { GatewayChallenge } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../time/clock.ts";
import { IssueError } from "./issue-error.ts";

/**
 * The time within which gateways must serve an answer. They apply a change within a second, and a
 * starting one within a minute.
 */
const SERVED_LIMIT_MS = 90_000;

interface Posted {
  readonly challenge: GatewayChallenge;
  served: boolean;
  readonly onServed: Set<() => void>;
}

/** The challenge answers that gateways should serve at present, and which of them they do serve. */
export class PendingChallenges {
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #posted = new Map<string, Posted>();

  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  list(): readonly GatewayChallenge[] {
    return [...this.#posted.values()].map(({ challenge }) => challenge);
  }

  served(tokens: ReadonlySet<string>): void {
    for (const [token, posted] of this.#posted) {
      posted.served = tokens.has(token);
      if (!posted.served) continue;
      for (const wake of posted.onServed) wake();
    }
  }

  /**
   * Publishes an answer until `takeDown` is called. Resolves once all gateways serve it. Throws
   * IssueError if they do not, and the signal's reason if it aborts.
   */
  async post(challenge: GatewayChallenge, signal: AbortSignal): Promise<void> {
    const posted: Posted = { challenge, served: false, onServed: new Set() };
    this.#posted.set(challenge.token, posted);
    this.#changed();
    await this.#servedInTime(posted, signal);
  }

  takeDown(token: string): void {
    if (this.#posted.delete(token)) this.#changed();
  }

  #servedInTime(posted: Posted, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (settle: () => void) => (): void => {
        cancel();
        signal.removeEventListener("abort", onAbort);
        posted.onServed.delete(onServed);
        settle();
      };
      const onServed = over(resolve);
      const onAbort = over(() => reject(signal.reason));
      const cancel = this.#clock.schedule(
        SERVED_LIMIT_MS,
        over(() => reject(notServed(posted.challenge))),
      );
      posted.onServed.add(onServed);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      else if (posted.served) onServed();
    });
  }
}

function notServed({ hostname, token }: GatewayChallenge): IssueError {
  const url = `http://${hostname}/.well-known/acme-challenge/${token}`;
  return new IssueError(
    `no gateway answers ${url} for the authority: is there a node with the label forage.dev/gateway, and is its gateway ready?`,
    { blame: "hostname" },
  );
}
