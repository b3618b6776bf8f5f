import { StoreError } from "../store-error.ts";
import { checkMembers } from "./check-members.ts";
import type { Etcd } from "./etcd.ts";
import { EtcdError } from "./etcd-error.ts";
import { type RetryTiming, retryUntilAnswered } from "./insist.ts";
import { Leadership } from "./leadership.ts";
import type { EtcdStoreOptions } from "./options.ts";
import { Outage } from "./outage.ts";

/** The time for etcd to respond while the store is opened. After it the service manager restarts the coordinator. */
const OPEN_OUTAGE_MAX_MS = 30_000;

export interface Lead {
  readonly calls: RetryTiming;
  readonly leadership: Leadership;
}

export type LeadOptions = EtcdStoreOptions & {
  /** Called when no coordinator leads, before this one tries to. */
  readonly onVacant?: (() => void) | undefined;
};

/** Waits until no other coordinator leads. */
export async function acquireLead(options: LeadOptions, known?: RetryTiming): Promise<Lead> {
  const calls = known ?? (await firstAnswer(options));
  const { etcd, self, nowMs, onStandby = () => {}, onVacant } = options;
  return {
    calls,
    leadership: await Leadership.acquire({ etcd, self, nowMs, ...calls }, onStandby, onVacant),
  };
}

/** Waits until a member of etcd answers. */
export async function firstAnswer(options: EtcdStoreOptions): Promise<RetryTiming> {
  const { etcd, clock, callClock = clock, random } = options;
  const signal = options.signal ?? new AbortController().signal;
  const outage = new Outage(callClock, options.writeWaitMs);
  const calls = { clock: callClock, random, outage, signal, outageMaxMs: OPEN_OUTAGE_MAX_MS };
  const members = await retryUntilAnswered(() => checkAnswering(etcd), calls);
  options.log?.({
    event: "etcd-answers",
    members: members.map(({ endpoint, type }) => ({ endpoint, type })),
  });
  return calls;
}

async function checkAnswering(etcd: Etcd) {
  const members = await checkMembers(etcd);
  if (members.some(({ type }) => type === "up")) return members;
  const reasons = members.map((member) => (member.type === "down" ? member.reason : ""));
  throw new EtcdError("UNAVAILABLE", reasons.join("; "));
}

export function asStoreError(error: unknown): StoreError {
  if (!(error instanceof EtcdError)) return StoreError.from(error);
  const code = error.retryable ? "UNAVAILABLE" : "IO_ERROR";
  return new StoreError(code, `etcd: ${error.message}`, { cause: error });
}
