import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { FakeSource } from "../../test/certificates/fake-source.ts";
import { testCertificateSource } from "../../test/certificates/source-contract.ts";
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
class ScriptedIssuer implements Issuer {
  readonly name = "the controlled issuer";
  readonly attempts: string[] = [];
  readonly #clock: VirtualClock;
  readonly #waiting: { hostname: string; settle: (error?: Error) => void; signal: AbortSignal }[] = [];
  readonly id: string;
  readonly atOnce = 2;
  #serial = 0;

  constructor(clock: VirtualClock, id = "scripted") {
    this.#clock = clock;
    this.id = id;
  }

  refusalOf(hostname: string): string | undefined {
    if (hostname === "poison.org") throw new Error("poison");
    return hostname.startsWith("*") ? "no wildcards here" : undefined;
  }

  issue(hostname: string, signal: AbortSignal): Promise<NewCertificate> {
    this.attempts.push(hostname);
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
  readonly issuer: ScriptedIssuer;
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
    const issuer = new ScriptedIssuer(clock, issuerId);
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
  return open("scripted");
}

testCertificateSource("fake", async () => {
  const source = new FakeSource();
  return { source, issue: async () => source.set([], { type: "issued", chainPem: "chain", keyPem: "key" }) };
});

testCertificateSource("controller", async (t) => {
  const { controller, issuer } = await start();
  t.after(() => controller.close());
  return { source: controller, issue: (hostname) => issuer.answer(hostname) };
});

test("issues certificates for other hostnames when the issuer can't evaluate one", async () => {
  const { controller, issuer, lines } = await start();
  controller.setHostnames(new Set(["a.org", "poison.org", "z.org"]));
  await issuer.answer("a.org");
  await issuer.answer("z.org");
  await kind(controller, "a.org", "issued");
  await kind(controller, "z.org", "issued");
  assert.equal(issuer.attempts.includes("poison.org"), false);
  const failed = lines.filter((line) => line.includes("object-failed"));
  assert.equal(failed.length, 1, "reported once");
  assert.match(failed[0] ?? "", /"loop":"certificates","kind":"certificate".*poison\.org/);
  await controller.close();
});

async function kind(controller: CertificateController, hostname: string, expected: string): Promise<void> {
  await until(`${hostname} is ${expected}`, () => {
    const answer = controller.certificateFor(hostname);
    return answer.type === expected || (answer.type === "pending" && answer.reason === expected);
  });
}

/**
 * Advances the clock in steps until the condition holds. The work that a step triggers ends before
 * the next step.
 */
async function untilLater(clock: VirtualClock, stepMs: number, holds: () => boolean): Promise<void> {
  let turns = 0;
  await until("its time has come", () => {
    if (holds()) return true;
    if (++turns % 20 === 0) clock.advance(stepMs);
    return false;
  });
}

/** Waits until the store has this number of certificate states. */
async function saved(store: Store, count: number): Promise<void> {
  await until(`${count} are stored`, async () => {
    const { records } = await store.range("certificates/");
    return records.length === count;
  });
}

test("obtains a certificate for a requested hostname, notifies its users, and requests none again after a restart", async () => {
  const before = await start();
  let changes = 0;
  before.controller.subscribe(() => changes++);
  before.controller.setHostnames(new Set(["a.test"]));
  await kind(before.controller, "a.test", "Issuing");
  await before.issuer.answer("a.test");
  await kind(before.controller, "a.test", "issued");
  assert.ok(changes >= 2);
  assert.deepEqual(
    before.events.map(({ reason }) => reason),
    ["CertificateIssued"],
  );

  const after = await before.restart();
  after.controller.setHostnames(new Set(["a.test"]));
  const answer = after.controller.certificateFor("a.test");
  assert.equal(answer.type === "issued" && answer.chainPem, "chain a.test 1");
  assert.equal(answer.type === "issued" && answer.keyPem, CANARY);
  after.controller.setHostnames(new Set(["a.test", "b.test"]));
  await after.issuer.answer("b.test");
  await kind(after.controller, "b.test", "issued");
  assert.deepEqual(after.issuer.attempts, ["b.test"]);
  await after.controller.close();
  assert.equal(after.clock.pending, 0);
});

test("stores no key in plain text, and logs none", async () => {
  const { controller, issuer, store, lines } = await start();
  controller.setHostnames(new Set(["a.test", "b.test"]));
  await issuer.answer("a.test");
  await issuer.answer("b.test", new Error(`defect with ${CANARY.slice(0, 6)}`));
  await saved(store, 2);
  for (const { value } of (await store.range("")).records) assert.ok(!Buffer.from(value).includes(CANARY));
  assert.ok(lines.length > 2 && !lines.join("").includes(CANARY));
  await controller.close();
});

test("renews a certificate at two thirds of its lifetime while the old one is served", async () => {
  const { controller, issuer, clock, events } = await start();
  controller.setHostnames(new Set(["a.test"]));
  await issuer.answer("a.test");
  await kind(controller, "a.test", "issued");
  clock.advance(59 * DAY_MS);
  assert.deepEqual(issuer.attempts, ["a.test"]);
  // Timers last at most an hour; the loop sets each one after the one before.
  await untilLater(clock, 3_600_000, () => issuer.attempts.length === 2);
  assert.ok(clock.nowMs() - 1_700_000_000_000 < 61 * DAY_MS, "not later than needed");
  assert.equal(controller.certificateFor("a.test").type, "issued");
  await issuer.answer("a.test");
  await until("the other one serves", () => {
    const answer = controller.certificateFor("a.test");
    return answer.type === "issued" && answer.chainPem === "chain a.test 2";
  });
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ["CertificateIssued", "CertificateRenewed"],
  );
  await controller.close();
});

test("reports a failure with the authority's text, and keeps the delay across a restart", async () => {
  const before = await start();
  before.controller.setHostnames(new Set(["a.test"]));
  await before.issuer.answer("a.test", new IssueError("dns: no such name", { blame: "hostname" }));
  await kind(before.controller, "a.test", "IssueFailed");
  const answer = before.controller.certificateFor("a.test");
  assert.match(answer.type === "pending" ? answer.message : "", /^dns: no such name \(tried again at 2023-/);
  assert.deepEqual(before.events.at(-1)?.reason, "CertificateFailed");

  const after = await before.restart();
  after.controller.setHostnames(new Set(["a.test"]));
  await kind(after.controller, "a.test", "IssueFailed");
  after.clock.advance(100_000);
  await saved(after.store, 1);
  assert.deepEqual(after.issuer.attempts, []);
  await untilLater(after.clock, 10_000, () => after.issuer.attempts.length === 1);
  await after.issuer.answer("a.test");
  await kind(after.controller, "a.test", "issued");
  await after.controller.close();
});

test("pauses an unreachable issuer for all hostnames, even across a restart", async () => {
  const before = await start();
  before.controller.setHostnames(new Set(["a.test", "b.test", "c.test"]));
  const away = new IssueError("the authority can't be reached", { blame: "issuer" });
  await before.issuer.answer("a.test", away);
  await before.issuer.answer("b.test", away);
  for (const hostname of ["a.test", "b.test", "c.test"])
    await kind(before.controller, hostname, "IssuerUnavailable");
  assert.equal(before.issuer.attempts.length, 2);

  const after = await before.restart();
  after.controller.setHostnames(new Set(["a.test"]));
  await kind(after.controller, "a.test", "IssuerUnavailable");
  assert.deepEqual(after.issuer.attempts, []);
  await untilLater(after.clock, 5_000, () => after.issuer.attempts.length === 1);
  await after.issuer.answer("a.test");
  await kind(after.controller, "a.test", "issued");
  await after.controller.close();
});

test("limits concurrent attempts to the issuer's limit, and makes none for refused hostnames", async () => {
  const { controller, issuer } = await start();
  controller.setHostnames(new Set(["a.test", "b.test", "c.test", "*.d.test"]));
  await until("two run", () => issuer.running.length === 2);
  const refused = controller.certificateFor("*.d.test");
  assert.deepEqual(refused, { type: "pending", reason: "Refused", message: "no wildcards here" });
  await issuer.answer("a.test");
  await until("the third runs", () => issuer.running.includes("c.test"));
  assert.deepEqual(issuer.attempts, ["a.test", "b.test", "c.test"]);
  await controller.close();
  assert.deepEqual(issuer.running, [], "attempts end with the coordinator");
});

test("cancels the attempt for a hostname that is no longer requested, and does not count it", async () => {
  const { controller, issuer, store, events } = await start();
  controller.setHostnames(new Set(["a.test"]));
  await until("it runs", () => issuer.running.length === 1);
  controller.setHostnames(new Set());
  await until("it expires", () => issuer.running.length === 0);
  controller.setHostnames(new Set(["b.test"]));
  await issuer.answer("b.test");
  await saved(store, 1);
  assert.deepEqual(
    events.map(({ name }) => name),
    ["b.test"],
  );
  await controller.close();
});

test("runs a requested renewal early and after a failure, but not before a delay that the authority requested", async () => {
  const { controller, issuer } = await start();
  controller.setHostnames(new Set(["a.test"]));
  await issuer.answer("a.test");
  await kind(controller, "a.test", "issued");
  let changes = 0;
  const stop = controller.subscribe(() => changes++);
  controller.renew("a.test");
  assert.equal(changes, 1, "its users show that a renewal is requested");
  stop();
  await issuer.answer("a.test", new IssueError("caa: forbidden", { blame: "hostname" }));
  await until("the failure shows", () => controller.state("a.test")?.failures === 1);
  const warned = controller.certificateFor("a.test");
  assert.match((warned.type === "issued" && warned.warning) || "", /^it expires at .* can't be renewed: caa/);
  controller.renew("a.test");
  const busy = new IssueError("rateLimited: wait", { blame: "rate", retryAfterMs: DAY_MS });
  await issuer.answer("a.test", busy);
  await until("the failure shows", () => controller.state("a.test")?.failures === 2);
  controller.renew("a.test");
  assert.ok(controller.state("a.test")?.retryAtRequested);
  assert.equal(issuer.attempts.length, 3);
  await controller.close();
});

test("ignores the back-off of an unreachable issuer for a requested renewal, but not a delay that the issuer requested", async () => {
  const { controller, issuer } = await start();
  controller.setHostnames(new Set(["a.test"]));
  await issuer.answer("a.test", new IssueError("can't be reached", { blame: "issuer" }));
  await kind(controller, "a.test", "IssuerUnavailable");
  controller.renew("a.test");
  await issuer.answer("a.test", new IssueError("busy", { blame: "issuer", retryAfterMs: 60_000 }));
  await until("the issuer is paused again", () => controller.pause?.isRequested === true);
  controller.renew("a.test");
  await kind(controller, "a.test", "IssuerUnavailable");
  assert.equal(issuer.attempts.length, 2);
  await controller.close();
});

test("keeps certificates of another issuer until those of the new one are issued", async () => {
  const before = await start();
  before.controller.setHostnames(new Set(["a.test"]));
  await before.issuer.answer("a.test");
  await kind(before.controller, "a.test", "issued");
  const after = await before.restart("another");
  after.controller.setHostnames(new Set(["a.test"]));
  assert.equal(after.controller.certificateFor("a.test").type, "issued");
  await after.issuer.answer("a.test");
  await until("it is replaced", () => after.controller.state("a.test")?.issuer === "another");
  await after.controller.close();
});

test("ends an attempt that takes too long", async () => {
  const { controller, issuer, clock } = await start();
  controller.setHostnames(new Set(["a.test"]));
  await until("it runs", () => issuer.running.length === 1);
  clock.advance(600_000);
  await kind(controller, "a.test", "IssueFailed");
  await controller.close();
});
