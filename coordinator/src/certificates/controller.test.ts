import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { until } from "../../test/support/until.ts";
import type { EventInput } from "../model/event.ts";
import { openVault } from "../objects/open-vault.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { CertificateStore } from "./certificate-store.ts";
import { CertificateController } from "./controller.ts";
import { IssueError } from "./issue-error.ts";
import type { Issuer, NewCertificate } from "./issuer.ts";

const DAY_MS = 24 * 3_600_000;
const CANARY = "canary-of-a-private-key";

/** An issuer with a scripted result for each attempt. */
class ToldIssuer implements Issuer {
  readonly name = "the controlled issuer";
  readonly asked: string[] = [];
  readonly #clock: VirtualClock;
  readonly #waiting: { hostname: string; settle: (error?: Error) => void; signal: AbortSignal }[] = [];
  readonly id: string;
  readonly atOnce = 2;
  #serial = 0;

  constructor(clock: VirtualClock, id = "told") {
    this.#clock = clock;
    this.id = id;
  }

  refusalOf(hostname: string): string | undefined {
    if (hostname === "poison.org") throw new Error("poison");
    return hostname.startsWith("*") ? "no wildcards here" : undefined;
  }

  issue(hostname: string, signal: AbortSignal): Promise<NewCertificate> {
    this.asked.push(hostname);
    return new Promise((resolve, reject) => {
      const settle = (error?: Error): void => {
        const nowMs = this.#clock.nowMs();
        if (error !== undefined) reject(error);
        else
          resolve({
            chainPem: `chain ${hostname} ${++this.#serial}`,
            keyPem: CANARY,
            notBeforeMs: nowMs,
            notAfterMs: nowMs + 90 * DAY_MS,
          });
      };
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#waiting.push({ hostname, settle, signal });
    });
  }

  get running(): readonly string[] {
    return this.#waiting.filter(({ signal }) => !signal.aborted).map(({ hostname }) => hostname);
  }

  async answer(hostname: string, error?: Error): Promise<void> {
    await until(`${hostname} is requested`, () => this.running.includes(hostname));
    const at = this.#waiting.findIndex((it) => it.hostname === hostname && !it.signal.aborted);
    this.#waiting.splice(at, 1)[0]?.settle(error);
  }
}

interface Given {
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly issuer: ToldIssuer;
  readonly controller: CertificateController;
  readonly events: EventInput[];
  readonly lines: string[];
  restart(issuerId?: string): Promise<Given>;
}

async function start(): Promise<Given> {
  const clock = new VirtualClock({ startMs: 1_700_000_000_000 });
  const store = createMemoryStore({ clock });
  const vault = await openVault([{ id: "k", bytes: randomBytes(32) }], store);
  const open = async (issuerId: string): Promise<Given> => {
    const lines: string[] = [];
    const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
    const events: EventInput[] = [];
    const issuer = new ToldIssuer(clock, issuerId);
    const controller = await CertificateController.open({
      issuerOf: () => issuer,
      records: new CertificateStore({ store, vault, log }),
      events: { record: (event) => void events.push(event) },
      clock,
      log,
      random: () => 0.5,
    });
    const restart = async (id = issuerId): Promise<Given> => {
      await controller.close();
      return open(id);
    };
    return { clock, store, issuer, controller, events, lines, restart };
  };
  return open("told");
}

test("a hostname that the issuer can't evaluate gets no certificate, and the others do", async () => {
  const { controller, issuer, lines } = await start();
  controller.want(new Set(["a.org", "poison.org", "z.org"]));
  await issuer.answer("a.org");
  await issuer.answer("z.org");
  await kind(controller, "a.org", "issued");
  await kind(controller, "z.org", "issued");
  assert.equal(issuer.asked.includes("poison.org"), false);
  const failed = lines.filter((line) => line.includes("object-failed"));
  assert.equal(failed.length, 1, "reported once");
  assert.match(failed[0] ?? "", /"loop":"certificates","kind":"certificate".*poison\.org/);
  await controller.close();
});

async function kind(controller: CertificateController, hostname: string, wanted: string): Promise<void> {
  await until(`${hostname} is ${wanted}`, () => {
    const answer = controller.certificateFor(hostname);
    return answer.kind === wanted || (answer.kind === "pending" && answer.reason === wanted);
  });
}

/** Lets time go by in steps until it holds; what a step sets off has come to its end before the next. */
async function untilLater(clock: VirtualClock, stepMs: number, holds: () => boolean): Promise<void> {
  let turns = 0;
  await until("its time has come", () => {
    if (holds()) return true;
    if (++turns % 20 === 0) clock.advance(stepMs);
    return false;
  });
}

/** Waits until the store holds so many certificate states. */
async function saved(store: Store, count: number): Promise<void> {
  await until(`${count} are stored`, async () => {
    const { records } = await store.range("certificates/");
    return records.length === count;
  });
}

test("a requested hostname gets a certificate that its users learn of, and a restart requests none again", async () => {
  const before = await start();
  let changes = 0;
  before.controller.subscribe(() => changes++);
  before.controller.want(new Set(["a.test"]));
  await kind(before.controller, "a.test", "Issuing");
  await before.issuer.answer("a.test");
  await kind(before.controller, "a.test", "issued");
  assert.ok(changes >= 2);
  assert.deepEqual(
    before.events.map(({ reason }) => reason),
    ["CertificateIssued"],
  );

  const after = await before.restart();
  after.controller.want(new Set(["a.test"]));
  const answer = after.controller.certificateFor("a.test");
  assert.equal(answer.kind === "issued" && answer.chainPem, "chain a.test 1");
  assert.equal(answer.kind === "issued" && answer.keyPem, CANARY);
  after.controller.want(new Set(["a.test", "b.test"]));
  await after.issuer.answer("b.test");
  await kind(after.controller, "b.test", "issued");
  assert.deepEqual(after.issuer.asked, ["b.test"]);
  await after.controller.close();
  assert.equal(after.clock.pending, 0);
});

test("keys are neither in the store in plain text nor in the log", async () => {
  const { controller, issuer, store, lines } = await start();
  controller.want(new Set(["a.test", "b.test"]));
  await issuer.answer("a.test");
  await issuer.answer("b.test", new Error(`defect with ${CANARY.slice(0, 6)}`));
  await saved(store, 2);
  for (const { value } of (await store.range("")).records) assert.ok(!Buffer.from(value).includes(CANARY));
  assert.ok(lines.length > 2 && !lines.join("").includes(CANARY));
  await controller.close();
});

test("it is renewed at two thirds of its life while the old one serves", async () => {
  const { controller, issuer, clock, events } = await start();
  controller.want(new Set(["a.test"]));
  await issuer.answer("a.test");
  await kind(controller, "a.test", "issued");
  clock.advance(59 * DAY_MS);
  assert.deepEqual(issuer.asked, ["a.test"]);
  // Timers are an hour long at most, each set by the loop after the one before.
  await untilLater(clock, 3_600_000, () => issuer.asked.length === 2);
  assert.ok(clock.nowMs() - 1_700_000_000_000 < 61 * DAY_MS, "not later than needed");
  assert.equal(controller.certificateFor("a.test").kind, "issued");
  await issuer.answer("a.test");
  await until("the other one serves", () => {
    const answer = controller.certificateFor("a.test");
    return answer.kind === "issued" && answer.chainPem === "chain a.test 2";
  });
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ["CertificateIssued", "CertificateRenewed"],
  );
  await controller.close();
});

test("a failure is reported with the authority's text, and its wait survives a restart", async () => {
  const before = await start();
  before.controller.want(new Set(["a.test"]));
  await before.issuer.answer("a.test", new IssueError("dns: no such name", { blame: "hostname" }));
  await kind(before.controller, "a.test", "IssueFailed");
  const told = before.controller.certificateFor("a.test");
  assert.match(told.kind === "pending" ? told.message : "", /^dns: no such name \(tried again at 2023-/);
  assert.deepEqual(before.events.at(-1)?.reason, "CertificateFailed");

  const after = await before.restart();
  after.controller.want(new Set(["a.test"]));
  await kind(after.controller, "a.test", "IssueFailed");
  after.clock.advance(100_000);
  await saved(after.store, 1);
  assert.deepEqual(after.issuer.asked, []);
  await untilLater(after.clock, 10_000, () => after.issuer.asked.length === 1);
  await after.issuer.answer("a.test");
  await kind(after.controller, "a.test", "issued");
  await after.controller.close();
});

test("an issuer out of reach is left alone for all hostnames, also after a restart", async () => {
  const before = await start();
  before.controller.want(new Set(["a.test", "b.test", "c.test"]));
  const away = new IssueError("the authority can't be reached", { blame: "issuer" });
  await before.issuer.answer("a.test", away);
  await before.issuer.answer("b.test", away);
  for (const hostname of ["a.test", "b.test", "c.test"])
    await kind(before.controller, hostname, "IssuerUnavailable");
  assert.equal(before.issuer.asked.length, 2);

  const after = await before.restart();
  after.controller.want(new Set(["a.test"]));
  await kind(after.controller, "a.test", "IssuerUnavailable");
  assert.deepEqual(after.issuer.asked, []);
  await untilLater(after.clock, 5_000, () => after.issuer.asked.length === 1);
  await after.issuer.answer("a.test");
  await kind(after.controller, "a.test", "issued");
  await after.controller.close();
});

test("no more attempts at once than the issuer takes, and none for what is refused", async () => {
  const { controller, issuer } = await start();
  controller.want(new Set(["a.test", "b.test", "c.test", "*.d.test"]));
  await until("two run", () => issuer.running.length === 2);
  const refused = controller.certificateFor("*.d.test");
  assert.deepEqual(refused, { kind: "pending", reason: "Refused", message: "no wildcards here" });
  await issuer.answer("a.test");
  await until("the third runs", () => issuer.running.includes("c.test"));
  assert.deepEqual(issuer.asked, ["a.test", "b.test", "c.test"]);
  await controller.close();
  assert.deepEqual(issuer.running, [], "attempts end with the coordinator");
});

test("an attempt for a hostname that is no longer requested is cancelled and not counted", async () => {
  const { controller, issuer, store, events } = await start();
  controller.want(new Set(["a.test"]));
  await until("it runs", () => issuer.running.length === 1);
  controller.want(new Set());
  await until("it ends", () => issuer.running.length === 0);
  controller.want(new Set(["b.test"]));
  await issuer.answer("b.test");
  await saved(store, 1);
  assert.deepEqual(
    events.map(({ name }) => name),
    ["b.test"],
  );
  await controller.close();
});

test("a requested renewal runs early and after a failure, but not before the wait that the authority requested", async () => {
  const { controller, issuer } = await start();
  controller.want(new Set(["a.test"]));
  await issuer.answer("a.test");
  await kind(controller, "a.test", "issued");
  controller.renew("a.test");
  await issuer.answer("a.test", new IssueError("caa: forbidden", { blame: "hostname" }));
  await until("the failure shows", () => controller.holding("a.test")?.failures === 1);
  const warned = controller.certificateFor("a.test");
  assert.match((warned.kind === "issued" && warned.warning) || "", /^it ends at .* can't be renewed: caa/);
  controller.renew("a.test");
  const busy = new IssueError("rateLimited: wait", { blame: "rate", retryAfterMs: DAY_MS });
  await issuer.answer("a.test", busy);
  await until("the failure shows", () => controller.holding("a.test")?.failures === 2);
  controller.renew("a.test");
  assert.ok(controller.holding("a.test")?.retryAtAsked);
  assert.equal(issuer.asked.length, 3);
  await controller.close();
});

test("a requested renewal ignores the back-off of an unreachable issuer, but keeps a wait that the issuer requested", async () => {
  const { controller, issuer } = await start();
  controller.want(new Set(["a.test"]));
  await issuer.answer("a.test", new IssueError("can't be reached", { blame: "issuer" }));
  await kind(controller, "a.test", "IssuerUnavailable");
  controller.renew("a.test");
  await issuer.answer("a.test", new IssueError("busy", { blame: "issuer", retryAfterMs: 60_000 }));
  await until("it is left alone again", () => controller.pause?.asked === true);
  controller.renew("a.test");
  await kind(controller, "a.test", "IssuerUnavailable");
  assert.equal(issuer.asked.length, 2);
  await controller.close();
});

test("certificates of another issuer serve until this one's have come", async () => {
  const before = await start();
  before.controller.want(new Set(["a.test"]));
  await before.issuer.answer("a.test");
  await kind(before.controller, "a.test", "issued");
  const after = await before.restart("another");
  after.controller.want(new Set(["a.test"]));
  assert.equal(after.controller.certificateFor("a.test").kind, "issued");
  await after.issuer.answer("a.test");
  await until("it is replaced", () => after.controller.holding("a.test")?.issuer === "another");
  await after.controller.close();
});

test("an attempt that never ends times out", async () => {
  const { controller, issuer, clock } = await start();
  controller.want(new Set(["a.test"]));
  await until("it runs", () => issuer.running.length === 1);
  clock.advance(600_000);
  await kind(controller, "a.test", "IssueFailed");
  await controller.close();
});
