import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { type Clock, systemClock } from "../src/clock.ts";
import { Journal } from "../src/journal/journal.ts";
import { loadJournalKey } from "../src/journal/journal-key.ts";
import { AssignmentReader } from "../src/link/assignment-reader.ts";
import { CoordinatorLink } from "../src/link/coordinator-link.ts";
import type { LinkState } from "../src/link/link-state.ts";
import { IdentityFiles } from "../src/link/node-identity.ts";
import { StatusOutbox } from "../src/link/status-outbox.ts";
import type { Pod } from "../src/pods/pod.ts";
import type { PodStatus } from "../src/pods/pod-status.ts";
import { aHost } from "./a-host.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { NoServices } from "./no-services.ts";
import { until } from "./until.ts";

test("joins with a token, takes its assignments to disk and tells how its pods are", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());

  await until("the pod is known", () => agent.pods.has("p1"));
  assert.equal(agent.link.state.kind, "connected");
  assert.equal(agent.journal.desired().get("p1")?.name, "pod-p1");
  assert.equal(agent.journal.clusterId, "test-cluster");

  coordinator.assign(anAssignment({ uid: "p2" }));
  await until("the delta is known", () => agent.pods.has("p2"));
  coordinator.forget("p1");
  await until("the removal is known", () => !agent.pods.has("p1"));
  assert.deepEqual([...agent.journal.desired().keys()], ["p2"]);
  await until("the revision is told", () => coordinator.lastRevision === coordinator.revision);

  agent.outbox.put(aStatus("p2", { ready: true }));
  await until("the status arrives", () => coordinator.statuses.get("p2")?.ready === true);
});

test("the key is for its owner only, and outlives the process", async (t) => {
  const coordinator = await startCoordinator(t);
  const first = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => first.link.state.kind === "connected");
  const file = join(first.dir, "identity", "node.pem");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const authorityPem = await readFile(join(first.dir, "identity", "ca.pem"), "utf8");
  assert.equal(first.identity.authorityPem, authorityPem);
  await first.stop();

  const again = await LinkUnderTest.start(t, coordinator, undefined, { dir: first.dir });
  await until("connected again", () => again.link.state.kind === "connected");
  assert.equal(coordinator.joins.length, 1);
  assert.equal((await readdir(join(first.dir, "identity"))).includes("pending.json"), false);
  const next = new IdentityFiles(join(first.dir, "identity"));
  await next.loadAuthority();
  assert.deepEqual([again.identity.authorityPem, next.authorityPem], [authorityPem, authorityPem]);
});

test("a coordinator with another authority never hears the secret", async (t) => {
  const good = await startCoordinator(t);
  const evil = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, evil, good.mintToken());
  await until("refused", () => agent.link.state.code === "REFUSED");
  assert.match(agent.link.state.message ?? "", /another authority/);
  assert.deepEqual(evil.joins, []);
});

test("a certificate for another host name is not good enough for the secret", async (t) => {
  const coordinator = await startCoordinator(t, { serverName: "elsewhere.example" });
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("failed", () => agent.link.state.kind === "failed");
  assert.deepEqual(coordinator.joins, []);
});

test("a token that is used up or out of date is refused with what to do", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken({ expiresAtMs: 1 }));
  await until("refused", () => agent.link.state.code === "REFUSED");
  assert.match(agent.link.state.message ?? "", /token/);
  await writeFile(agent.tokenFile, coordinator.mintToken());
  await until("joined with the fresh one", () => agent.link.state.kind === "connected");
});

test("comes back after the coordinator was away, and says what it has", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => agent.pods.has("p1"));
  await coordinator.close();
  await until("noticed", () => agent.link.state.kind !== "connected");
  assert.equal(agent.pods.has("p1"), true);

  const { authority, port } = coordinator;
  const successor = await startCoordinator(t, { authority, port });
  successor.revision = coordinator.revision;
  successor.assign(anAssignment({ uid: "p1" }));
  await until("connected again", () => successor.hellos.length > 0);
  assert.equal(successor.hellos[0]?.clusterId, "test-cluster");
  assert.equal(successor.hellos[0]?.assignmentRevision, coordinator.revision);
});

test("a coordinator of another cluster, or with older data, is refused and changes nothing", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => agent.pods.has("p1"));
  const { authority, port, revision } = coordinator;
  await coordinator.close();

  const stranger = await startCoordinator(t, { authority, port, clusterId: "other" });
  await until("refused", () => agent.link.state.code === "NOT_OURS");
  assert.match(agent.link.state.message ?? "", /test-cluster.*other/);
  await stranger.close();

  const older = await startCoordinator(t, { authority, port });
  older.revision = revision - 1n;
  await until("refused again", () => /older data/.test(agent.link.state.message ?? ""));
  assert.deepEqual([...agent.pods.keys()], ["p1"]);
  assert.deepEqual([...agent.journal.desired().keys()], ["p1"]);
});

test("a change that was seen before is no news", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => coordinator.connections === 1);
  coordinator.assign(anAssignment({ uid: "p1" }));
  await until("assigned", () => agent.pods.has("p1"));
  coordinator.send([], ["p1"], coordinator.revision);
  coordinator.assign(anAssignment({ uid: "p2" }));
  await until("the next one is taken", () => agent.pods.has("p2"));
  assert.equal(agent.pods.has("p1"), true);
});

test("renews its certificate over the old one and goes over to it without a gap", async (t) => {
  // Certificates are dated back by five minutes, so two thirds of this one's life are over at once.
  const coordinator = await startCoordinator(t, { certificateLifetimeMs: 60_000 });
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("renewed", () => coordinator.renewals === 1);
  await until("gone over", () => coordinator.hellos.length === 2 && coordinator.connections === 1);
  assert.equal(
    agent.states.some((it) => it.kind === "failed"),
    false,
  );
  const ends = agent.link.state.certificateEndsMs ?? 0;
  assert.ok(ends > Date.now() + 3_600_000, "the new certificate is in use");
  coordinator.assign(anAssignment({ uid: "p1" }));
  await until("the new stream works", () => agent.pods.has("p1"));
});

test("an expired certificate leaves the pods alone and asks for a fresh token", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const first = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => first.pods.has("p1"));
  await first.stop();

  const clock = { ...systemClock, nowMs: () => Date.now() + 48 * 3_600_000 };
  const late = await LinkUnderTest.start(t, coordinator, undefined, { dir: first.dir, clock });
  await until("told", () => late.link.state.code === "CERTIFICATE_EXPIRED");
  assert.match(late.link.state.message ?? "", /pods keep running.*token/);
  assert.deepEqual([...late.journal.desired().keys()], ["p1"]);
  await writeFile(late.tokenFile, coordinator.mintToken());
  await until("joined again", () => coordinator.joins.length === 2);
});

test("the secret is in no file but the operator's, and in no state that is shown", async (t) => {
  const coordinator = await startCoordinator(t);
  const token = coordinator.mintToken();
  const agent = await LinkUnderTest.start(t, coordinator, token);
  await until("connected", () => agent.link.state.kind === "connected");
  const secret = token.split(".")[3] ?? "";
  assert.equal(JSON.stringify(agent.states).includes(secret), false);
  for (const name of await readdir(join(agent.dir, "identity"))) {
    const text = await readFile(join(agent.dir, "identity", name), "utf8");
    assert.equal(text.includes(secret), false, name);
  }
});

async function startCoordinator(t: TestContext, options: Parameters<typeof FakeCoordinator.start>[0] = {}) {
  const coordinator = await FakeCoordinator.start(options);
  t.after(() => coordinator.close());
  return coordinator;
}

test("newer identity tokens reach their pods at once, and older ones never come back", async (t) => {
  const coordinator = await startCoordinator(t);
  const podConfig = PodConfig.fromPartial({ serviceAccountName: "builder" });
  const assignment = (token: string, expiresAtSeconds: number) => ({
    ...anAssignment({ uid: "p1", template: { podConfig } }),
    identityToken: { token, expiresAt: { seconds: BigInt(expiresAtSeconds), nanos: 0 } },
  });
  coordinator.assign(assignment("first", 1_000));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  const token = () => agent.pods.get("p1")?.objects?.identityToken;
  await until("the first token", () => token() === "first");

  coordinator.sendTokens({ p1: "second", unknown: "other" }, 2_000);
  await until("the second token", () => token() === "second");
  assert.equal(agent.journal.desired().get("p1")?.identityToken?.token, "first", "not worth a write");
  assert.deepEqual([...agent.pods.keys()], ["p1"]);

  coordinator.assign({ ...assignment("first", 1_000), labels: { changed: "yes" } });
  await until("the change", () => agent.pods.get("p1")?.labels?.changed === "yes");
  assert.equal(token(), "second");
  coordinator.assign(assignment("third", 3_000));
  await until("the third token", () => token() === "third");

  coordinator.forget("p1");
  await until("gone", () => agent.pods.size === 0);
  coordinator.assign(assignment("first", 1_000));
  await until("a pod of the same uid begins anew", () => token() === "first");
});

test("an assignment in several messages counts as one", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "old" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => agent.pods.has("old"));
  const revision = coordinator.revision + 1n;
  coordinator.sendDelta({ revision, upserts: [anAssignment({ uid: "a" })], more: true });
  coordinator.sendDelta({ revision, removals: ["old"], more: true });
  // Read in order: when the token is there, the parts have been seen.
  coordinator.sendTokens({ old: "seen" }, 1_000);
  await until("the parts are read", () => agent.pods.get("old")?.objects?.identityToken === "seen");
  assert.deepEqual([...agent.pods.keys()], ["old"], "half of it is nothing");
  coordinator.sendDelta({ revision });
  await until("the whole", () => agent.pods.has("a"));
  assert.deepEqual([...agent.pods.keys()], ["a"]);
  assert.equal(agent.journal.revision, revision);

  coordinator.sendDelta({ revision: revision + 1n, upserts: [anAssignment({ uid: "b" })], more: true });
  coordinator.sendDelta({ revision: revision + 2n, upserts: [anAssignment({ uid: "c" })] });
  await until("refused", () => agent.link.state.code === "PROTOCOL");
  assert.deepEqual([...agent.pods.keys()], ["a"]);
});

test("claims to be removed are handed on, and their removal is told", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => agent.link.state.kind === "connected" && coordinator.connections === 1);
  const claim = { namespace: "shop", name: "db" };
  coordinator.sendDelta({ revision: coordinator.revision + 1n, claimRemovals: [claim] });
  await until("asked", () => agent.claimRemovals.length === 1);
  assert.deepEqual(agent.claimRemovals, ["shop/db"]);
  agent.link.claimRemoved(claim);
  await until("told", () => coordinator.claimsRemoved.length === 1);
  assert.deepEqual(coordinator.claimsRemoved, [claim]);
});

/** The link with a real journal, and pods that are only noted. */
class LinkUnderTest {
  readonly dir: string;
  readonly journal: Journal;
  readonly identity: IdentityFiles;
  readonly outbox = new StatusOutbox();
  readonly pods = new Map<string, Pod>();
  readonly claimRemovals: string[] = [];
  readonly states: LinkState[] = [];
  readonly link: CoordinatorLink;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  private constructor(dir: string, journal: Journal, port: number, clock: Clock) {
    this.dir = dir;
    this.journal = journal;
    this.identity = new IdentityFiles(join(dir, "identity"));
    this.link = new CoordinatorLink({
      enroll: {
        address: { host: "127.0.0.1", port },
        nodeName: "node-1",
        tokenFile: this.tokenFile,
        files: this.identity,
      },
      agentVersion: "0",
      bootId: "boot",
      sessionId: "session",
      clock,
      // Short waits: the jitter's lower end.
      random: () => 0.05,
      journal,
      pods: this.#assigned(),
      reader: new AssignmentReader(aHost(), new Map(), () => this.identity.authorityPem),
      services: new NoServices(),
      removeClaims: (claims) => {
        this.claimRemovals.push(...claims.map(({ namespace, name }) => `${namespace}/${name}`));
      },
      outbox: this.outbox,
      node: { report: aReport, usage: async () => ({ cpuMilli: 0n, memoryBytes: 0n, pods: 0 }) },
      openSession: () => undefined,
      events: {
        changed: (state) => this.states.push(state),
        renewed: () => undefined,
        renewalFailed: () => undefined,
      },
    });
    this.#running = this.link.run(this.#stopping.signal);
  }

  static async start(
    t: TestContext,
    { port }: FakeCoordinator,
    token: string | undefined,
    options: { dir?: string; clock?: Clock } = {},
  ): Promise<LinkUnderTest> {
    const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "forage-link-")));
    const { signal } = new AbortController();
    const journal = await Journal.open({
      dir: join(dir, "journal"),
      key: await loadJournalKey({ dir }),
      signal,
    });
    if (token !== undefined) await writeFile(join(dir, "token"), token);
    const under = new LinkUnderTest(dir, journal, port, options.clock ?? systemClock);
    t.after(async () => {
      await under.stop();
      await rm(dir, { recursive: true, force: true });
    });
    return under;
  }

  get tokenFile(): string {
    return join(this.dir, "token");
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.journal.close();
  }

  #assigned() {
    return {
      replace: (pods: readonly Pod[]) => {
        this.pods.clear();
        for (const pod of pods) this.pods.set(pod.uid, pod);
      },
      apply: (upserts: readonly Pod[], removals: readonly string[]) => {
        for (const pod of upserts) this.pods.set(pod.uid, pod);
        for (const uid of removals) this.pods.delete(uid);
      },
      statuses: (): readonly PodStatus[] => [...this.pods.keys()].map((uid) => aStatus(uid)),
    };
  }
}

function aStatus(uid: string, change: Partial<PodStatus> = {}): PodStatus {
  return {
    uid,
    namespace: "default",
    name: `pod-${uid}`,
    specHash: `hash-${uid}`,
    phase: "RUNNING",
    ready: false,
    reason: "",
    message: "",
    podIp: "10.0.0.1",
    containers: [],
    hostPorts: [],
    ...change,
  };
}

function aReport() {
  return {
    capacity: { cpu: "2" },
    allocatable: { cpu: "2" },
    labels: {},
    address: "127.0.0.1",
    os: "",
    kernel: "",
    architecture: "",
    containerdVersion: "",
    nerdctlVersion: "",
    conditions: [],
    images: [],
    runtimeClasses: [],
    selinux: false,
    claims: [],
  };
}
