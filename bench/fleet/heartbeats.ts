import { systemClock } from "@forage/common/clock";
import type { ConnectRequest, ConnectResponse } from "@forage/proto/forage/agent/v1/agent";
import { AnswerWatch } from "../../agent/src/link/answer-watch.ts";

/** Sends heartbeats as a real agent does, and requests answers as often. */
export class Heartbeats {
  readonly #send: (message: ConnectRequest) => void;
  readonly #watch: AnswerWatch;
  #intervalMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `onSilence`: called once if the coordinator no longer answers. */
  constructor(send: (message: ConnectRequest) => void, onSilence: () => void) {
    this.#send = send;
    this.#watch = new AnswerWatch({ clock: systemClock, isBusy: () => false, onSilence });
  }

  every(intervalMs: number): void {
    this.#intervalMs = intervalMs;
    this.#sendIn(intervalMs);
  }

  /** Must be called with each message of the coordinator. */
  received({ message }: ConnectResponse): void {
    this.#watch.received();
    if (message?.$case === "heartbeatAnswer" && message.value.nextMs > 0) this.#sendIn(message.value.nextMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#watch.close();
  }

  #sendIn(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#send(heartbeat(this.#watch.request(this.#intervalMs)));
      this.#sendIn(this.#intervalMs);
    }, delayMs);
  }
}

export function heartbeat(answerRequested = false): ConnectRequest {
  return {
    message: { $case: "heartbeat", value: { assignmentRevision: 0n, usage: undefined, answerRequested } },
  };
}
