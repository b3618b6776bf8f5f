import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { DestinationService } from "@forage/proto/destination";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { Client } from "@grpc/grpc-js";
import { type EtcdServer, startEtcd } from "../../hack/lib/etcd-server.ts";
import { freePorts } from "../../hack/lib/free-ports.ts";
import { type Program, spawnProgram } from "../../hack/lib/spawn-program.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { callsOf } from "./support/calls.ts";
import { type AgentWorld, HollowAgent } from "./support/hollow-agent.ts";
import { Lookup } from "./support/lookup.ts";
import { aContainerService, aRequest, aService } from "./support/requests.ts";

const CONFIG = "coordinator.yaml";
const MAIN = join(import.meta.dirname, "../src/main.ts");
/** The machine may be busy with other tests. */
const LIMIT_MS = 90_000;
const WEB = "web.shop.svc.cluster.local:80";

test("followers serve while the leader is killed or paused, and one of them leads then", async (t) => {
  const etcd = await startEtcd();
  t.after(() => etcd.close());
  const cluster = await startCluster(t, etcd);
  const first = await leaderOf(cluster);
  const others = cluster.filter((member) => member !== first);
  const [second, third] = others;
  assert.ok(second && third);

  // Each call goes to a coordinator that doesn't lead.
  const agent = await HollowAgent.start(second);
  const resources = [aService("web", "web"), aContainerService("web")];
  await second.forage.applyResources(aRequest("first", resources));
  const lookups = others.map((member) => ({ member, starts: member.starts, lookup: member.lookUp() }));
  for (const { lookup } of lookups) await lookup.until(() => lookup.endpoints.size === 2);
  const pods = await podNames(third);
  assert.equal(pods.length, 2);
  // Every coordinator passes on the list of the one that leads. On a busy machine that may be another one by now.
  for (const member of others) await untilListed(member, cluster);
  const before = lookups.map(({ lookup }) => lookup.updates.length);
  const ends = lookups.map(({ lookup }) => readOn(lookup));

  first.end("SIGKILL");
  const killedMs = performance.now();
  await leaderOf(others);
  t.diagnostic(`another coordinator led after ${Math.round(performance.now() - killedMs)} ms`);
  for (const member of others) await untilListed(member, others);
  agent.close();
  const back = agent.again({ behaviour: (pod) => agent.running(pod) });
  for (const member of others)
    await waitFor(async () => (await podNames(member)).join() === pods.join(), wait("the pods are the same"));
  await waitFor(() => recordsLeaders(third), wait("both leaders are events"));
  await waitFor(() => back.assignments.size === 2, wait("the agent is back"));
  await third.forage.applyResources(aRequest("more", [aService("more", "web")]));
  const more = others.map((member) => member.lookUp("more.shop.svc.cluster.local:80"));
  for (const lookup of more) await lookup.until(() => lookup.endpoints.size === 2);
  for (const [at, { member, starts, lookup }] of lookups.entries()) {
    // A coordinator that the machine gave no time for longer than its lease has ended, and was started again.
    if (member.starts !== starts) continue;
    assert.deepEqual(lookup.updates.slice(before[at]), [], "a look-up goes on without a message");
    assert.equal(await Promise.race([ends[at], "open"]), "open");
  }

  await first.start();
  const leading = await leaderOf(cluster);
  const paused = leading.end("SIGSTOP");
  await leaderOf(cluster.filter((member) => member !== leading));
  paused.kill("SIGCONT");
  // It can't write any more, so that it ends. The service manager starts it again.
  assert.equal(await paused.exited, 1);
  await leading.start();
  await leaderOf(cluster);
  await waitFor(async () => (await podNames(leading)).join() === pods.join(), wait("the pods are the same"));
});

/** Waits until the member lists these coordinators as ready, and one of them as the one that leads. */
async function untilListed(member: Member, expected: readonly Member[]): Promise<void> {
  const addresses = expected.map(({ address }) => address).sort();
  const isListed = async (): Promise<boolean> => {
    const { coordinators } = await member
      .operator()
      .listCoordinators({})
      .catch(() => ({ coordinators: [] }));
    const ready = coordinators.filter((it) => it.ready);
    const listed = ready.map((it) => it.addresses[0] ?? "").sort();
    return listed.join() === addresses.join() && ready.filter(({ leads }) => leads).length === 1;
  };
  await waitFor(isListed, wait(`the coordinator at ${member.address} lists ${addresses.join(", ")}`));
}

/** Returns whether there are events of the leader at the start and of one that has followed. */
async function recordsLeaders(member: Member): Promise<boolean> {
  const filter = { kind: "coordinator", name: "", type: "", reason: "LeadTaken", since: undefined };
  const { events } = await member
    .operator()
    .listEvents({ namespace: "", filter, after: 0n, limit: 100 })
    .catch(() => ({ events: [] }));
  const kinds = [/ leads since its start$/, / leads and has followed another coordinator before$/];
  return kinds.every((kind) => events.some(({ message }) => kind.test(message)));
}

/** Reads until the stream ends. */
async function readOn(lookup: Lookup): Promise<string> {
  while (await lookup.read().catch(() => false));
  return "ended";
}

/** A coordinator as a process, and clients of it. */
class Member implements AgentWorld {
  readonly address: string;
  readonly caPem: string;
  readonly forage: ReturnType<typeof callsOf<typeof ForageServiceService>>;
  /** The number of times that it was started again. */
  starts = 0;
  #program: Program;
  /** The program that the test has ended. */
  #ended: Program | undefined;
  #isOver = false;
  readonly #dir: string;
  readonly #http: string;
  readonly #t: TestContext;
  readonly #client: Client;
  readonly #token: string;

  /** Starts it and waits until it serves. The directory holds its configuration. */
  static async start(t: TestContext, dir: string, ports: Ports): Promise<Member> {
    const program = spawn(dir);
    try {
      await ready(ports.http, program);
    } catch (error) {
      program.kill("SIGKILL");
      throw error;
    }
    return new Member(t, dir, ports, program);
  }

  constructor(t: TestContext, dir: string, { grpc, http }: Ports, program: Program) {
    this.#t = t;
    this.#dir = dir;
    this.address = grpc;
    this.#http = http;
    this.#program = program;
    this.#supervise(program);
    t.after(() => {
      this.#isOver = true;
      this.#program.kill("SIGKILL");
    });
    this.caPem = readFileSync(join(dir, "ca.crt"), "utf8");
    this.#token = readFileSync(join(dir, "../token"), "utf8");
    this.#client = new Client(grpc, channelCredentials({ caPem: this.caPem }), {
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 500,
    });
    t.after(() => this.#client.close());
    this.forage = callsOf(ForageServiceService, this.#client, bearerMetadata(this.#token));
  }

  async start(): Promise<void> {
    const program = spawn(this.#dir);
    this.#program = program;
    this.starts++;
    this.#supervise(program);
    await ready(this.#http, program);
  }

  /** Sends the signal to the program, which is not started again until `start`. */
  end(signal: NodeJS.Signals): Program {
    this.#ended = this.#program;
    this.#program.kill(signal);
    return this.#program;
  }

  /** Starts it again when it ends by itself, as a service manager does. */
  #supervise(program: Program): void {
    void program.exited.then(async () => {
      if (!this.#isOver && this.#ended !== program) await this.start().catch(() => {});
    });
  }

  operator() {
    return callsOf(OperatorServiceService, this.#client, bearerMetadata(this.#token));
  }

  lookUp(path = WEB): Lookup {
    const { get } = callsOf(DestinationService, this.#client, bearerMetadata(this.#token));
    const lookup = new Lookup(get({ scheme: "", path, contextToken: "" }));
    this.#t.after(() => lookup.close());
    return lookup;
  }

  /** Returns whether it leads; undefined: it does not answer. */
  leads(): Promise<boolean | undefined> {
    return fetch(`http://${this.#http}/readyz`, { signal: AbortSignal.timeout(15_000) }).then(
      async (response) => {
        const { role } = (await response.json()) as { readonly role?: { readonly leads: boolean } };
        return role?.leads;
      },
      () => undefined,
    );
  }

  atEnd(close: () => void): void {
    this.#t.after(close);
  }
}

interface Ports {
  /** HOST:PORT. */
  readonly grpc: string;
  readonly http: string;
}

/** Starts three coordinators. The first one makes the store. */
async function startCluster(t: TestContext, etcd: EtcdServer): Promise<readonly Member[]> {
  const root = mkdtempSync(join(tmpdir(), "forage-followers-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const ports = await freePorts(6);
  const make = async (at: number, known?: Member): Promise<Member> => {
    const dir = join(root, String(at));
    const [grpc, http] = ports.slice(2 * at, 2 * at + 2).map((port) => `127.0.0.1:${port}`);
    assert.ok(grpc && http);
    mkdirSync(dir);
    const config = {
      dataDir: dir,
      grpc: { listen: grpc },
      http: { listen: http },
      adminTokenFile: join(root, "token"),
      store: { etcd: { endpoints: [etcd.endpoint] } },
    };
    writeFileSync(join(dir, CONFIG), JSON.stringify(config));
    if (known !== undefined) await joinWith(dir, known);
    return Member.start(t, dir, { grpc, http });
  };
  const first = await make(0);
  return [first, ...(await Promise.all([make(1, first), make(2, first)]))];
}

/** Gets the keys of the cluster, as an operator does on the host of a further coordinator. A busy machine may need several tries. */
async function joinWith(dir: string, known: Member): Promise<void> {
  const tokenFile = join(dir, "token");
  const args = ["join", known.address, "--token-file", tokenFile, "--config", join(dir, CONFIG)];
  const logPath = join(dir, "join.log");
  const joins = async (): Promise<boolean> => {
    const made = await known
      .operator()
      .createCoordinatorToken({ ttlSeconds: 0 })
      .catch(() => undefined);
    if (made === undefined) return false;
    writeFileSync(tokenFile, made.token, { mode: 0o600 });
    return (await spawnProgram(process.execPath, [MAIN, ...args], { logPath }).exited) === 0;
  };
  const explain = (): string => (existsSync(logPath) ? readFileSync(logPath, "utf8") : "");
  await waitFor(joins, { ...wait(`${dir} has the keys of the cluster`), explain });
}

function spawn(dir: string): Program {
  const args = [MAIN, "--config", join(dir, CONFIG)];
  return spawnProgram(process.execPath, args, { logPath: join(dir, "log") });
}

async function ready(http: string, program: Program): Promise<void> {
  const answers = (): Promise<boolean> =>
    fetch(`http://${http}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor(answers, {
    ...wait(`the coordinator at ${http} is ready`),
    explain: () => program.readLog().slice(-2_000),
  });
}

/** Waits until exactly one of them leads. */
function leaderOf(members: readonly Member[]): Promise<Member> {
  return waitFor(async () => {
    const leads = await Promise.all(members.map((member) => member.leads()));
    const [at, ...more] = leads.flatMap((it, index) => (it === true ? [index] : []));
    return at === undefined || more.length > 0 ? undefined : members[at];
  }, wait("one coordinator leads"));
}

/** Returns no names while the coordinator can't tell. */
async function podNames(member: Member): Promise<string[]> {
  const { pods } = await member
    .operator()
    .listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" })
    .catch(() => ({ pods: [] }));
  return pods.map(({ name }) => name).sort();
}

function wait(what: string) {
  return { what, limitMs: LIMIT_MS };
}
