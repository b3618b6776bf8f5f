import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { DestinationService } from "@forage/proto/destination";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { Client } from "@grpc/grpc-js";
import { freePorts } from "../../../hack/lib/free-ports.ts";
import { type Program, spawnProgram } from "../../../hack/lib/spawn-program.ts";
import { waitFor } from "../../../hack/lib/wait-for.ts";
import { callsOf } from "./calls.ts";
import type { AgentWorld } from "./hollow-agent.ts";
import { Lookup } from "./lookup.ts";

const CONFIG = "coordinator.yaml";
const MAIN = join(import.meta.dirname, "../../src/main.ts");
/** The machine may be busy with other tests. */
const LIMIT_MS = 90_000;

export interface ClusterOptions {
  /** The URLs of etcd for each coordinator. */
  readonly endpointsOf: (at: number) => readonly string[];
  /** Further variables of the environment of each coordinator. Default: none. */
  readonly environmentOf?: (at: number) => Readonly<Record<string, string>>;
  /** Further settings of all coordinators. Default: none. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** A coordinator as a process, and clients of it. */
export class Member implements AgentWorld {
  readonly address: string;
  readonly caPem: string;
  readonly forage: ReturnType<typeof callsOf<typeof ForageServiceService>>;
  /** The number of times that it was started again. */
  starts = 0;
  #program: Program;
  /** The program that the test has ended. */
  #ended: Program | undefined;
  #isOver = false;
  readonly http: string;
  readonly #dir: string;
  /** Variables of the environment of its next lives. */
  environment: Environment;
  readonly #t: TestContext;
  readonly #client: Client;
  readonly #token: string;

  /** Starts it and waits until it serves. The directory holds its configuration. */
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
    this.#token = readFileSync(join(dir, "../token"), "utf8");
    this.#client = new Client(grpc, channelCredentials({ caPem: this.caPem }), {
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 500,
    });
    this.forage = callsOf(ForageServiceService, this.#client, bearerMetadata(this.#token));
  }

  /** Starts it again. `more`: further variables of the environment of this life. */
  async start(more: Environment = {}): Promise<void> {
    const program = spawn(this.#dir, { ...this.environment, ...more });
    this.#program = program;
    this.starts++;
    this.#supervise(program);
    await ready(this.http, program);
  }

  /** Ends the program for good, and waits until it has ended. */
  async close(): Promise<void> {
    this.#isOver = true;
    this.#client.close();
    this.#program.kill("SIGKILL");
    await this.#program.exited;
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

  /** The roots that its clients need at the moment, PEM. */
  readRoots(): string {
    return readFileSync(join(this.#dir, "ca.crt"), "utf8");
  }

  /** Returns the same coordinator for clients that trust these roots. */
  withRoots(caPem: string): AgentWorld {
    const client = new Client(this.address, channelCredentials({ caPem }));
    this.#t.after(() => client.close());
    return {
      ...{ address: this.address, caPem, atEnd: (close) => this.atEnd(close) },
      operator: () => callsOf(OperatorServiceService, client, bearerMetadata(this.#token)),
    };
  }

  /** The lines of its log over all of its lives. */
  log(): string {
    return this.#program.readLog();
  }

  /** The number of times that it began: as a process, or after it had lost the lead. */
  get lives(): number {
    return this.starts + this.log().split('"event":"lead-lost"').length;
  }

  lookUp(path: string): Lookup {
    const { get } = callsOf(DestinationService, this.#client, bearerMetadata(this.#token));
    const lookup = new Lookup(get({ scheme: "", path, contextToken: "" }));
    this.#t.after(() => lookup.close());
    return lookup;
  }

  /** Returns whether it leads; undefined: it does not answer. */
  leads(): Promise<boolean | undefined> {
    return fetch(`http://${this.http}/readyz`, { signal: AbortSignal.timeout(15_000) }).then(
      async (response) => {
        const { role } = (await response.json()) as { readonly role?: { readonly leads: boolean } };
        return role?.leads;
      },
      () => undefined,
    );
  }

  /** Returns the status of the answer to an HTTP request with the token. */
  async get(path: string): Promise<number> {
    const headers = { authorization: `Bearer ${this.#token}` };
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

interface Ports {
  /** HOST:PORT. */
  readonly grpc: string;
  readonly http: string;
}

type Environment = Readonly<Record<string, string>>;

/** Starts three coordinators. The first one makes the store. */
export async function startCluster(t: TestContext, options: ClusterOptions): Promise<readonly Member[]> {
  const { endpointsOf, environmentOf = () => ({}), settings = {} } = options;
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

function spawn(dir: string, env: Environment): Program {
  const args = [MAIN, "--config", join(dir, CONFIG)];
  return spawnProgram(process.execPath, args, { logPath: join(dir, "log"), env });
}

/** Rejects also as soon as the program has ended, so that nothing goes on asking after the test. */
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
