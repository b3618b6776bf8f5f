import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

const MAIN = join(import.meta.dirname, "../src/main.ts");
/** The machine may be busy with other tests. */
const LIMIT_MS = 90_000;
const WEB = "web.shop.svc.cluster.local:80";

test("followers serve while the leader is killed or paused, and one of them leads then", async (t) => {
  const etcd = await startEtcd();
  t.after(() => etcd.close());
  const cluster = await startCluster(t, etcd);
  const [first, second, third] = cluster;
  assert.deepEqual(await leaders(cluster), [true, false, false]);

  // Each call goes to a coordinator that doesn't lead.
  const agent = await HollowAgent.start(second);
  const resources = [aService("web", "web"), aContainerService("web")];
  await second.forage.applyResources(aRequest("first", resources));
  const lookups = [second, third].map((member) => member.lookUp());
  for (const lookup of lookups) await lookup.until(() => lookup.endpoints.size === 2);
  const pods = await podNames(third);
  assert.equal(pods.length, 2);
  const updates = lookups.map((lookup) => lookup.updates.length);
  const ends = lookups.map((lookup) => readOn(lookup));

  first.program.kill("SIGKILL");
  const others = [second, third];
  const killedMs = performance.now();
  await waitFor(async () => (await leaders(others)).includes(true), wait("another coordinator leads"));
  t.diagnostic(`another coordinator led after ${Math.round(performance.now() - killedMs)} ms`);
  agent.close();
  const back = agent.again({ behaviour: (pod) => agent.running(pod) });
  for (const member of others)
    await waitFor(async () => (await podNames(member)).join() === pods.join(), wait("the pods are the same"));
  await waitFor(() => back.assignments.size === 2, wait("the agent is back"));
  await third.forage.applyResources(aRequest("more", [aService("more", "web")]));
  const more = others.map((member) => member.lookUp("more.shop.svc.cluster.local:80"));
  for (const lookup of more) await lookup.until(() => lookup.endpoints.size === 2);
  for (const [at, lookup] of lookups.entries())
    assert.deepEqual(lookup.updates.slice(updates[at]), [], "a look-up goes on without a message");
  assert.equal(await Promise.race([...ends, "open"]), "open");

  await first.start();
  const leading = others[(await leaders(others)).indexOf(true)];
  assert.ok(leading);
  leading.program.kill("SIGSTOP");
  const rest = cluster.filter((member) => member !== leading);
  await waitFor(async () => (await leaders(rest)).includes(true), wait("the next coordinator leads"));
  leading.program.kill("SIGCONT");
  // It can't write any more, so that it ends. The service manager starts it again.
  assert.equal(await leading.program.exited, 1);
  await leading.start();
  assert.equal((await leaders(cluster)).filter((leads) => leads).length, 1);
  assert.deepEqual(await podNames(leading), pods);
});

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
  program: Program;
  readonly #dir: string;
  readonly #http: string;
  readonly #t: TestContext;
  readonly #client: Client;
  readonly #token: string;

  /** Starts it and waits until it serves. The directory holds its configuration. */
  static async start(t: TestContext, dir: string, ports: Ports): Promise<Member> {
    const program = spawn(dir);
    t.after(() => program.kill("SIGKILL"));
    await ready(ports.http, program);
    return new Member(t, dir, ports, program);
  }

  constructor(t: TestContext, dir: string, { grpc, http }: Ports, program: Program) {
    this.#t = t;
    this.#dir = dir;
    this.address = grpc;
    this.#http = http;
    this.program = program;
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
    this.program = program;
    this.#t.after(() => program.kill("SIGKILL"));
    await ready(this.#http, program);
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
    return fetch(`http://${this.#http}/readyz`, { signal: AbortSignal.timeout(1_000) }).then(
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

/** Starts three coordinators, of which the first one leads. */
async function startCluster(t: TestContext, etcd: EtcdServer): Promise<[Member, Member, Member]> {
  const root = mkdtempSync(join(tmpdir(), "forage-followers-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const ports = await freePorts(6);
  const make = async (at: number): Promise<Member> => {
    const dir = join(root, String(at));
    const [grpc, http] = ports.slice(2 * at, 2 * at + 2).map((port) => `127.0.0.1:${port}`);
    assert.ok(grpc && http);
    mkdirSync(dir);
    if (at > 0)
      for (const name of ["authority", "keys"])
        cpSync(join(root, "0", name), join(dir, name), { recursive: true });
    const config = {
      dataDir: dir,
      grpc: { listen: grpc },
      http: { listen: http },
      adminTokenFile: join(root, "token"),
      store: { etcd: { endpoints: [etcd.endpoint] } },
    };
    writeFileSync(join(dir, "coordinator.yaml"), JSON.stringify(config));
    return Member.start(t, dir, { grpc, http });
  };
  const first = await make(0);
  const [second, third] = await Promise.all([make(1), make(2)]);
  return [first, second, third];
}

function spawn(dir: string): Program {
  const args = [MAIN, "--config", join(dir, "coordinator.yaml")];
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

function leaders(members: readonly Member[]): Promise<(boolean | undefined)[]> {
  return Promise.all(members.map((member) => member.leads()));
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
