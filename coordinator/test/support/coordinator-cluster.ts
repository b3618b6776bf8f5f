import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { DestinationService } from "@forage/proto/destination";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { Client, type ServiceDefinition } from "@grpc/grpc-js";
import { bundledProgram } from "../../../hack/bundling/bundled-program.ts";
import { freePorts } from "../../../hack/lib/free-ports.ts";
import { type Program, spawnProgram } from "../../../hack/lib/spawn-program.ts";
import { waitFor } from "../../../hack/lib/wait-for.ts";
import { type Calls, callsOf } from "./calls.ts";
import type { AgentWorld } from "./hollow-agent.ts";
import { Lookup } from "./lookup.ts";

const COORDINATOR = await bundledProgram("coordinator");
/** A module that is loaded before the program (`node --import`) shares the packages of the source only. */
const COORDINATOR_SOURCE = join(import.meta.dirname, "../../src/main.ts");

const CONFIG = "coordinator.yaml";
/** The limit allows for other tests that run at the same time. */
const LIMIT_MS = 90_000;

export interface ClusterOptions {
  /** Returns the URLs of etcd for each coordinator. */
  readonly endpointsOf: (at: number) => readonly string[];
  /** Returns further environment variables of each coordinator. Default: none. */
  readonly environmentOf?: (at: number) => Readonly<Record<string, string>>;
  /** Further settings of all coordinators. Default: none. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Returns further settings of each coordinator. Default: none. */
  readonly settingsOf?: (at: number) => Readonly<Record<string, unknown>>;
}

/** A coordinator as a process, with clients of it. */
export class Member implements AgentWorld {
  readonly address: string;
  readonly caPem: string;
  readonly forage: ReturnType<typeof callsOf<typeof ForageServiceService>>;
  /** The number of restarts. */
  starts = 0;
  #program: Program;
  /** The program that the test has ended. */
  #ended: Program | undefined;
  #isOver = false;
  readonly http: string;
  readonly #dir: string;
  /** The environment variables of its next runs. */
  environment: Environment;
  readonly #t: TestContext;
  readonly #client: Client;
  /** The API token of an administrator. */
  readonly token: string;

  /**
   * Starts the coordinator, and waits until it serves. The directory contains its configuration.
   */
  static async start(t: TestContext, dir: string, ports: Ports, environment: Environment): Promise<Member> {
    const program = spawn(dir, environment);
    try {
      await ready(ports.http, program);
    } catch (error) {
      program.kill("SIGKILL");
      throw error;
    }
    return new Member(t, dir, ports, environment, program);
  }

  private constructor(
    t: TestContext,
    dir: string,
    { grpc, http }: Ports,
    environment: Environment,
    program: Program,
  ) {
    this.#t = t;
    this.#dir = dir;
    this.address = grpc;
    this.http = http;
    this.environment = environment;
    this.#program = program;
    this.#supervise(program);
    this.caPem = readFileSync(join(dir, "ca.crt"), "utf8");
    this.token = readFileSync(join(dir, "../token"), "utf8");
    this.#client = new Client(grpc, channelCredentials({ caPem: this.caPem }), {
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 500,
    });
    this.forage = callsOf(ForageServiceService, this.#client, bearerMetadata(this.token));
  }

  /** Starts it again. `more` are further environment variables of this run. */
  async start(more: Environment = {}): Promise<void> {
    const program = spawn(this.#dir, { ...this.environment, ...more });
    this.#program = program;
    this.starts++;
    this.#supervise(program);
    await ready(this.http, program);
  }

  /** Ends the program permanently, and waits until it has ended. */
  async close(): Promise<void> {
    this.#isOver = true;
    this.#client.close();
    this.#program.kill("SIGKILL");
    await this.#program.exited;
  }

  /** Sends the signal to the program, which is not restarted until `start`. */
  end(signal: NodeJS.Signals): Program {
    this.#ended = this.#program;
    this.#program.kill(signal);
    return this.#program;
  }

  /** Restarts the program when it ends by itself, like a service manager. */
  #supervise(program: Program): void {
    void program.exited.then(async () => {
      if (!this.#isOver && this.#ended !== program) await this.start().catch(() => {});
    });
  }

  operator() {
    return this.calls(OperatorServiceService);
  }

  calls<S extends ServiceDefinition>(definition: S): Calls<S> {
    return callsOf(definition, this.#client, bearerMetadata(this.token));
  }

  /** Returns the roots that its clients need at present, in PEM. */
  readRoots(): string {
    return readFileSync(join(this.#dir, "ca.crt"), "utf8");
  }

  /** Returns the private SSH host key of its gateway to workspaces. */
  readHostKey(): string {
    return readFileSync(join(this.#dir, "keys/workspace-ssh.key"), "utf8");
  }

  /** Returns the same coordinator for clients that trust these roots. */
  withRoots(caPem: string): AgentWorld {
    const client = new Client(this.address, channelCredentials({ caPem }));
    this.#t.after(() => client.close());
    return {
      ...{ address: this.address, caPem, atEnd: (close) => this.atEnd(close) },
      operator: () => callsOf(OperatorServiceService, client, bearerMetadata(this.token)),
    };
  }

  /** Returns the lines of its log over all runs. */
  log(): string {
    return this.#program.readLog();
  }

  /** The number of times that it started: as a process, or after it had lost the lead. */
  get lives(): number {
    return this.starts + this.log().split('"event":"lead-lost"').length;
  }

  lookUp(path: string): Lookup {
    const { get } = callsOf(DestinationService, this.#client, bearerMetadata(this.token));
    const lookup = new Lookup(get({ scheme: "", path, contextToken: "" }));
    this.#t.after(() => lookup.close());
    return lookup;
  }

  /** Returns whether it leads; undefined if it does not answer. */
  async leads(): Promise<boolean | undefined> {
    return (await this.#role())?.leads;
  }

  /** Returns the time since which it leads; undefined if it does not lead or does not answer. */
  async leadsSinceMs(): Promise<number | undefined> {
    const { leads, since } = (await this.#role()) ?? {};
    return leads === true && since !== undefined ? Date.parse(since) : undefined;
  }

  #role(): Promise<Role | undefined> {
    return fetch(`http://${this.http}/readyz`, { signal: AbortSignal.timeout(15_000) }).then(
      async (response) => ((await response.json()) as { readonly role?: Role }).role,
      () => undefined,
    );
  }

  /** Returns the text of its metrics. */
  async metrics(): Promise<string> {
    return (await fetch(`http://${this.http}/metrics`, { signal: AbortSignal.timeout(15_000) })).text();
  }

  /** Returns the status of the answer to an HTTP request with the token. */
  async get(path: string): Promise<number> {
    const headers = { authorization: `Bearer ${this.token}` };
    const response = await fetch(`http://${this.http}${path}`, {
      headers,
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    await response.arrayBuffer();
    return response.status;
  }

  atEnd(close: () => void): void {
    this.#t.after(close);
  }
}

interface Role {
  readonly leads: boolean;
  readonly since?: string;
}

interface Ports {
  /** The address of the gRPC port, HOST:PORT. */
  readonly grpc: string;
  readonly http: string;
}

type Environment = Readonly<Record<string, string>>;

/** Starts three coordinators. The first one creates the store. */
export async function startCluster(t: TestContext, options: ClusterOptions): Promise<readonly Member[]> {
  const { endpointsOf, environmentOf = () => ({}), settings = {}, settingsOf = () => ({}) } = options;
  const root = mkdtempSync(join(tmpdir(), "forage-coordinators-"));
  const members: Member[] = [];
  t.after(async () => {
    await Promise.all(members.map((member) => member.close()));
    rmSync(root, { recursive: true, force: true });
  });
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
      store: { etcd: { endpoints: endpointsOf(at) } },
      ...settings,
      ...settingsOf(at),
    };
    writeFileSync(join(dir, CONFIG), JSON.stringify(config));
    if (known !== undefined) await joinWith(dir, known);
    const member = await Member.start(t, dir, { grpc, http }, environmentOf(at));
    members.push(member);
    return member;
  };
  const first = await make(0);
  return [first, ...(await Promise.all([make(1, first), make(2, first)]))];
}

/**
 * Obtains the keys of the cluster like an operator on the host of a further coordinator. A busy
 * machine may need several attempts.
 */
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
    return (await spawnProgram(process.execPath, [COORDINATOR, ...args], { logPath }).exited) === 0;
  };
  const explain = (): string => (existsSync(logPath) ? readFileSync(logPath, "utf8") : "");
  await waitFor(joins, { ...wait(`${dir} has the keys of the cluster`), explain });
}

function spawn(dir: string, env: Environment): Program {
  // The environment may name a module that is loaded before the program.
  const main = env.NODE_OPTIONS === undefined ? COORDINATOR : COORDINATOR_SOURCE;
  const args = [main, "--config", join(dir, CONFIG)];
  return spawnProgram(process.execPath, args, { logPath: join(dir, "log"), env });
}

/**
 * Waits until the program is ready. Rejects when the program has ended, so that no requests
 * continue after the test.
 */
async function ready(http: string, program: Program): Promise<void> {
  const ended = new AbortController();
  const { signal } = ended;
  void program.exited.then((end) =>
    ended.abort(new Error(`the coordinator ended with ${end}\n${program.readLog().slice(-2_000)}`)),
  );
  const answers = (): Promise<boolean> =>
    fetch(`http://${http}/readyz`, { signal: AbortSignal.any([signal, AbortSignal.timeout(15_000)]) }).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor(answers, {
    ...wait(`the coordinator at ${http} is ready`),
    signal,
    explain: () => program.readLog().slice(-2_000),
  });
}

/** Waits until exactly one of them leads. */
export function leaderOf(members: readonly Member[]): Promise<Member> {
  return waitFor(async () => {
    const leads = await Promise.all(members.map((member) => member.leads()));
    const [at, ...more] = leads.flatMap((it, index) => (it === true ? [index] : []));
    return at === undefined || more.length > 0 ? undefined : members[at];
  }, wait("one coordinator leads"));
}

function wait(what: string) {
  return { what, limitMs: LIMIT_MS };
}
