import type { Log } from "@forage/common/log";
import {
  CoordinatorServiceService,
  type ReportRequest,
  type ReportResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import { type Client, Metadata } from "@grpc/grpc-js";
import type { FollowedStore } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { OwnPlace } from "./coordinator-table.ts";
import type { TokensUsed } from "./tokens-used.ts";

export interface ReportOptions {
  readonly own: OwnPlace;
  readonly store: Pick<FollowedStore, "revision" | "behindMs">;
  /** Returns a channel to the leader. */
  readonly client: (signal: AbortSignal) => Promise<Client>;
  /** The tokens of calls that this coordinator has served. */
  readonly tokensUsed: Pick<TokensUsed, "drain">;
  /** Returns the pins of the authorities whose certificates this coordinator accepts. */
  readonly authorityPins: () => readonly string[];
  readonly clock: Pick<Clock, "schedule" | "nowMs">;
  readonly log: Log;
  readonly onAnswer: (answer: ReportResponse) => void;
}

const INTERVAL_MS = 2_000;
const TIMEOUT_MS = 5_000;

/**
 * Reports to the leader at once and then every 2 s, one call at a time. Returns a function that
 * stops this.
 */
export function reportToLeader(options: ReportOptions): () => void {
  const { clock, log, onAnswer } = options;
  const over = new AbortController();
  let cancel = (): void => {};
  const report = (): void => {
    void sendReport(options, over.signal)
      .then(onAnswer)
      .catch((err: unknown) => log.debug({ event: "report-not-taken", err }))
      .then(() => {
        if (!over.signal.aborted) cancel = clock.schedule(INTERVAL_MS, report);
      });
  };
  report();
  return () => {
    over.abort();
    cancel();
  };
}

async function sendReport(
  { own, store, client, clock, tokensUsed, authorityPins }: ReportOptions,
  signal: AbortSignal,
): Promise<ReportResponse> {
  const channel = await client(signal);
  const request: ReportRequest = {
    name: own.name,
    addresses: [...own.addresses],
    revision: BigInt(store.revision),
    behindMs: BigInt(Math.round(store.behindMs)),
    usedTokenIds: tokensUsed.drain(),
    authorityPins: [...authorityPins()],
    clockMs: BigInt(Math.round(clock.nowMs())),
  };
  const { path, requestSerialize, responseDeserialize } = CoordinatorServiceService.report;
  const options = { deadline: clock.nowMs() + TIMEOUT_MS };
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, response?: ReportResponse): void => {
      signal.removeEventListener("abort", abort);
      if (error === null && response !== undefined) resolve(response);
      else reject(error);
    };
    const call = channel.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      new Metadata(),
      options,
      done,
    );
    const abort = (): void => call.cancel();
    signal.addEventListener("abort", abort, { once: true });
  });
}
