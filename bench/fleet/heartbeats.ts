import { systemClock } from "@forage/common/clock";
import type { ConnectRequest } from "@forage/proto/forage/agent/v1/agent";
import { AnswerWatch } from "../../agent/src/link/answer-watch.ts";

/** Sends heartbeats as a real agent does, and requests answers as often. */
export class Heartbeats {
  readonly #send: (message: ConnectRequest) => void;
  readonly #watch: AnswerWatch;
  #timer: NodeJS.Timeout | undefined;

  /** `onSilence`: called once if the coordinator no longer answers. */
  constructor(send: (message: ConnectRequest) => void, onSilence: () => void) {
    this.#send = send;
    this.#watch = new AnswerWatch({ clock: systemClock, isBusy: () => false, onSilence });
  }

  every(intervalMs: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#send(heartbeat(this.#watch.request(intervalMs))), intervalMs);
  }

  /** Must be called for each message of the coordinator. */
  received(): void {
    this.#watch.received();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#watch.received();
  }
}

export function heartbeat(answerRequested = false): ConnectRequest {
  return {
    message: { $case: "heartbeat", value: { assignmentRevision: 0n, usage: undefined, answerRequested } },
  };
}
