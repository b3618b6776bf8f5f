import type { BackOff } from "@forage/common/back-off";
import type { Log } from "@forage/common/log";
import type { GatewayChallenge } from "@forage/proto/forage/agent/v1/agent";
import { Loop } from "../control/loop.ts";
import { ObjectFaults } from "../faults/object-faults.ts";
import type { CertificateSource, SourcedCertificate } from "../gateway/certificate-source.ts";
import type { EventRecorder } from "../model/event.ts";
import type { Clock } from "../time/clock.ts";
import { HOSTNAME_BACK_OFF, ISSUER_BACK_OFF } from "./back-off.ts";
import { certificateFor } from "./certificate-for.ts";
import { type CertificateState, emptyCertificateState, type Pause } from "./certificate-state.ts";
import type { CertificateStore } from "./certificate-store.ts";
import { failureEvent, issuedEvent } from "./events.ts";
import { IssueError } from "./issue-error.ts";
import type { Issuer, NewCertificate } from "./issuer.ts";
import { failed, pauseAfter, succeeded } from "./outcome.ts";
import { PendingChallenges } from "./pending-challenges.ts";
import { type Attempt, planCertificates } from "./plan.ts";

export interface CertificateControllerOptions {
  /** Creates the issuer, which publishes answers to challenges by `challenges`. */
  readonly issuerOf: (challenges: PendingChallenges) => Issuer;
  readonly records: CertificateStore;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly backOffs?: { readonly hostname: BackOff; readonly issuer: BackOff };
}

export interface AttemptCounts {
  readonly succeeded: number;
  readonly failed: number;
}

const KEY = "certificates";
/** The longest interval between plans. Wall clocks may be set, and hosts may sleep. */
const LONGEST_WAIT_MS = 3_600_000;
/** The time limit of an attempt, several times as long as an order with a slow authority. */
const ATTEMPT_LIMIT_MS = 10 * 60_000;

/**
 * Obtains a certificate for each requested hostname, and renews it in time. No other code uses the
 * issuer.
 */
export class CertificateController implements CertificateSource {
  readonly #options: CertificateControllerOptions;
  readonly #issuer: Issuer;
  readonly #challenges: PendingChallenges;
  readonly #states: Map<string, CertificateState>;
  readonly #running = new Map<string, { readonly abort: AbortController; readonly done: Promise<void> }>();
  readonly #listeners = new Set<() => void>();
  readonly #loop: Loop;
  /** The hostnames with changed states that are not stored yet. */
  readonly #unsaved = new Set<string>();
  #pause: Pause | undefined;
  #pauseSaved = true;
  #requested: ReadonlySet<string> = new Set();
  #counts: AttemptCounts = { succeeded: 0, failed: 0 };
  #closed = false;

  static async open(options: CertificateControllerOptions): Promise<CertificateController> {
    const { records } = options;
    return new CertificateController(options, await records.load(), await records.loadPause());
  }

  readonly #faults: ObjectFaults;

  private constructor(
    options: CertificateControllerOptions,
    states: Map<string, CertificateState>,
    pause: Pause | undefined,
  ) {
    this.#options = options;
    this.#states = states;
    this.#pause = pause;
    const { clock, log } = options;
    this.#faults = new ObjectFaults({ loop: "certificates", log });
    this.#challenges = new PendingChallenges(clock, () => this.#changed());
    this.#issuer = options.issuerOf(this.#challenges);
    this.#loop = new Loop({ name: "certificates", reconcile: () => this.#reconcile(), clock, log });
  }

  setHostnames(hostnames: ReadonlySet<string>): void {
    this.#requested = new Set(hostnames);
    this.#loop.wake(KEY);
  }

  certificateFor(hostname: string): SourcedCertificate {
    const issuer = this.#issuer;
    return certificateFor({
      state: this.#states.get(hostname),
      refusal: issuer.refusalOf(hostname),
      running: this.#running.has(hostname),
      pause: this.#pause,
      issuerName: issuer.name,
      nowMs: this.#options.clock.nowMs(),
    });
  }

  challenges(): readonly GatewayChallenge[] {
    return this.#challenges.list();
  }

  served(tokens: ReadonlySet<string>): void {
    this.#challenges.served(tokens);
  }

  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  get requested(): ReadonlySet<string> {
    return this.#requested;
  }

  get issuer(): Pick<Issuer, "id" | "name" | "refusalOf"> {
    return this.#issuer;
  }

  get pause(): Pause | undefined {
    return this.#pause;
  }

  get counts(): AttemptCounts {
    return this.#counts;
  }

  state(hostname: string): CertificateState | undefined {
    return this.#states.get(hostname);
  }

  states(): readonly CertificateState[] {
    return [...this.#states.values()];
  }

  isRunning(hostname: string): boolean {
    return this.#running.has(hostname);
  }

  /** Requests an early renewal. A delay requested by the authority still applies. */
  renew(hostname: string): void {
    const state = this.#states.get(hostname) ?? emptyCertificateState(hostname, this.#issuer.id);
    const { retryAtMs, ...rest } = state;
    const renewalRequestedAtMs = this.#options.clock.nowMs();
    this.#keep({ ...rest, ...(state.retryAtRequested && { retryAtMs }), renewalRequestedAtMs });
    if (this.#pause !== undefined && !this.#pause.isRequested)
      this.#setPause({ ...this.#pause, untilMs: renewalRequestedAtMs });
    this.#changed();
  }

  /** Cancels attempts in progress, which are repeated after the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { abort } of this.#running.values()) abort.abort(new Error("the coordinator stops"));
    await Promise.all([...this.#running.values()].map(({ done }) => done));
    await this.#loop.close();
    await this.#save().catch((err: unknown) =>
      this.#options.log.error({ event: "certificates-not-stored", err }),
    );
    this.#listeners.clear();
  }

  async #reconcile(): Promise<number | undefined> {
    // Attempts begin only after earlier results were stored. Otherwise certificates would be lost
    // while the disk is full.
    await this.#save();
    const { clock, records } = this.#options;
    const issuer = this.#issuer;
    const nowMs = clock.nowMs();
    const { start, stop, forget, nextMs } = planCertificates({
      requested: this.#requested,
      states: this.#states,
      running: new Set(this.#running.keys()),
      issuer,
      isRefused: (hostname) => this.#isRefused(hostname),
      pausedUntilMs: this.#pause?.untilMs,
      nowMs,
    });
    for (const hostname of stop)
      this.#running
        .get(hostname)
        ?.abort.abort(new Error(`no route needs a certificate for ${hostname} any more`));
    for (const attempt of start) this.#begin(attempt);
    if (start.length > 0) this.#changed();
    await eachInTurn(forget, async (hostname) => {
      await records.forget(hostname);
      this.#states.delete(hostname);
    });
    return nextMs === undefined ? undefined : Math.min(Math.max(nextMs - nowMs, 1), LONGEST_WAIT_MS);
  }

  /** Reports whether the issuer refuses the hostname without an attempt. */
  #isRefused(hostname: string): boolean {
    const subject = { kind: "certificate", namespace: "", name: hostname };
    return this.#faults.attempt(subject, () => this.#issuer.refusalOf(hostname) !== undefined) ?? true;
  }

  #begin(attempt: Attempt): void {
    if (this.#closed) return;
    const abort = new AbortController();
    const done = this.#attempt(attempt, abort).finally(() => {
      this.#running.delete(attempt.hostname);
      this.#changed();
      this.#loop.wake(KEY);
    });
    this.#running.set(attempt.hostname, { abort, done });
  }

  async #attempt({ hostname, why }: Attempt, abort: AbortController): Promise<void> {
    const { clock, log } = this.#options;
    const issuer = this.#issuer;
    log.info({ event: "certificate-ordered", hostname, why, issuer: issuer.name });
    let tooLate = false;
    const cancelLimit = clock.schedule(ATTEMPT_LIMIT_MS, () => {
      tooLate = true;
      abort.abort(new Error("the attempt took too long"));
    });
    try {
      this.#succeed(hostname, await issuer.issue(hostname, abort.signal));
    } catch (error) {
      if (abort.signal.aborted && !tooLate) return;
      this.#fail(hostname, tooLate ? late() : error);
    } finally {
      cancelLimit();
    }
  }

  #succeed(hostname: string, certificate: NewCertificate): void {
    const { random, events, log, clock } = this.#options;
    const issuer = this.#issuer;
    const before = this.#states.get(hostname) ?? emptyCertificateState(hostname, issuer.id);
    this.#counts = { ...this.#counts, succeeded: this.#counts.succeeded + 1 };
    this.#keep(succeeded(before, issuer.id, certificate, { nowMs: clock.nowMs(), random: random() }));
    this.#setPause(undefined);
    events.record(issuedEvent(before, certificate, issuer.name));
    log.info({ event: "certificate-issued", hostname, notAfter: new Date(certificate.notAfterMs) });
  }

  #fail(hostname: string, thrown: unknown): void {
    const { random, events, log, clock, backOffs } = this.#options;
    const error = thrown instanceof IssueError ? thrown : unexpected(thrown);
    // The text of an unexpected error may contain secrets, so it is only logged.
    log.warn({ event: "certificate-order-failed", hostname, blame: error.blame, err: thrown });
    const context = {
      nowMs: clock.nowMs(),
      random: random(),
      hostnameBackOff: backOffs?.hostname ?? HOSTNAME_BACK_OFF,
      issuerBackOff: backOffs?.issuer ?? ISSUER_BACK_OFF,
    };
    const before = this.#states.get(hostname) ?? emptyCertificateState(hostname, this.#issuer.id);
    const after = failed(before, error, context);
    this.#counts = { ...this.#counts, failed: this.#counts.failed + 1 };
    if (after !== before) this.#keep(after);
    this.#setPause(pauseAfter(this.#pause, error, context));
    events.record(failureEvent(hostname, error));
  }

  #keep(state: CertificateState): void {
    this.#states.set(state.hostname, state);
    this.#unsaved.add(state.hostname);
    this.#loop.wake(KEY);
  }

  #setPause(pause: Pause | undefined): void {
    if (pause === this.#pause) return;
    this.#pause = pause;
    this.#pauseSaved = false;
  }

  async #save(): Promise<void> {
    const { records } = this.#options;
    await eachInTurn([...this.#unsaved], async (hostname) => {
      this.#unsaved.delete(hostname);
      const state = this.#states.get(hostname);
      if (state === undefined) return;
      await records.save(state).catch((error: unknown) => {
        this.#unsaved.add(hostname);
        throw error;
      });
    });
    if (this.#pauseSaved) return;
    const pause = this.#pause;
    await records.savePause(pause);
    this.#pauseSaved = pause === this.#pause;
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Runs the step for each item, even after a failure. Then throws the first error. */
async function eachInTurn<T>(items: readonly T[], step: (item: T) => Promise<void>): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  for (const item of items) {
    try {
      await step(item);
    } catch (error) {
      failure ??= { error };
    }
  }
  if (failure !== undefined) throw failure.error;
}

function late(): IssueError {
  return new IssueError(`the attempt took longer than ${ATTEMPT_LIMIT_MS / 60_000} minutes`, {
    blame: "hostname",
  });
}

function unexpected(cause: unknown): IssueError {
  return new IssueError("an unexpected error, see the coordinator's log", { blame: "hostname", cause });
}
