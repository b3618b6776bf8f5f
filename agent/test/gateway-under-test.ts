import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type IncomingMessage, type RequestOptions, request, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { GatewayUpdate, ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { ensureEnvoy } from "../../hack/lib/envoy.ts";
import { freePorts } from "../../hack/lib/free-ports.ts";
import { systemClock } from "../src/clock.ts";
import { EnvoyPaths } from "../src/gateway/envoy/envoy-paths.ts";
import { EnvoyAdminSocket } from "../src/gateway/envoy-admin.ts";
import { EnvoyProxy, type Launcher } from "../src/gateway/envoy-proxy.ts";
import { HostGateway } from "../src/gateway/host-gateway.ts";
import { KnownGateway } from "../src/gateway/known-gateway.ts";
import { ProgramLauncher } from "../src/gateway/launch-program.ts";
import { JournalKey } from "../src/journal/journal-key.ts";
import { runCommand } from "../src/network/run-command.ts";
import { KnownServices } from "../src/services/known-services.ts";
import { until } from "./until.ts";

export type Update = Parameters<typeof GatewayUpdate.fromPartial>[0];
export type Host = NonNullable<Update["hosts"]>[number];
export type Rule = NonNullable<Host["rules"]>[number];
export type Service = NonNullable<Parameters<typeof ServiceUpdate.fromPartial>[0]["upserts"]>[number];

/** Creates the launcher of a proxy that needs these directories. */
export type MakeLauncher = (...directories: readonly string[]) => Launcher;

/** A gateway on loopback with a real Envoy. The test's end removes everything. */
export class GatewayUnderTest {
  readonly dir: string;
  readonly ports: { readonly http: number; readonly https: number };
  readonly proxy: EnvoyProxy;
  readonly admin: EnvoyAdminSocket;
  readonly places: EnvoyPaths;
  readonly events: string[] = [];
  readonly #key = new JournalKey(randomBytes(32), "test");
  gateway!: HostGateway;
  known!: KnownGateway;
  services!: KnownServices;
  #version = 0n;
  #address = "127.0.0.1";

  private constructor(dir: string, launcher: MakeLauncher, ports: { http: number; https: number }) {
    this.dir = dir;
    this.ports = ports;
    this.places = new EnvoyPaths(join(dir, "run"));
    this.admin = new EnvoyAdminSocket(this.places.adminSocket);
    this.proxy = new EnvoyProxy({
      launcher: launcher(this.places.dir, dir),
      bootstrap: this.places.bootstrap,
      log: join(dir, "envoy.log"),
      clock: systemClock,
    });
  }

  static async start(
    t: TestContext,
    options: { readonly launcher?: MakeLauncher; readonly address?: string } = {},
  ): Promise<GatewayUnderTest> {
    const dir = await mkdtemp(join(tmpdir(), "forage-gateway-"));
    const [http = 0, https = 0] = await freePorts(2);
    const ports = { http, https };
    const program = await ensureEnvoy();
    const fromHost = () =>
      new ProgramLauncher({ program, instance: "test", systemd: false, run: runCommand });
    const it = new GatewayUnderTest(dir, options.launcher ?? fromHost, ports);
    it.#address = options.address ?? "127.0.0.1";
    t.after(async () => {
      t.diagnostic((await it.proxy.lastWords()).slice(-1_000));
      await it.gateway.close();
      await it.services.close();
      await it.proxy.kill();
      await rm(dir, { recursive: true, force: true });
    });
    await it.startAgent();
    return it;
  }

  /** Starts the agent's part, and adopts what an earlier one left. */
  async startAgent(): Promise<void> {
    const onError = (error: unknown): void => assert.fail(String(error));
    this.services = await KnownServices.open({
      dir: join(this.dir, "services"),
      clock: systemClock,
      onError,
    });
    this.known = await KnownGateway.open({
      ...{ dir: join(this.dir, "gateway"), clock: systemClock, onError, key: this.#key },
    });
    const { places, admin, known, services, proxy } = this;
    this.gateway = new HostGateway({
      ...{ known, services, proxy, admin, clock: systemClock },
      render: {
        ...{ places, node: "n1", address: this.#address, ports: this.ports, trustedHops: 0 },
        accessLog: this.accessLog,
      },
      bootstrap: {
        ...{ places, node: "n1", instance: "test", connectionsMax: 10_000, memoryLimitBytes: 1024 ** 3 },
      },
      onEvent: (event, fields) => this.events.push(`${event} ${fields.err ?? ""}`),
    });
    this.gateway.start();
  }

  async stopAgent(): Promise<void> {
    await this.gateway.close();
    await this.services.close();
  }

  /** Removes the files on tmpfs, as a reboot does. */
  async forgetRunDir(): Promise<void> {
    await rm(this.places.dir, { recursive: true });
  }

  get accessLog(): string {
    return join(this.dir, "logs", "access.log");
  }

  /** Replaces all services. */
  serve(...upserts: readonly Service[]): void {
    this.services.apply(ServiceUpdate.fromPartial({ full: true, upserts: [...upserts] }));
  }

  /** Sends an update without waiting for it to be applied. */
  send(update: Update): bigint {
    const version = ++this.#version;
    this.gateway.apply(GatewayUpdate.fromPartial({ gateway: "default", version, ...update }));
    return version;
  }

  /** Sends an update. Resolves with the message of the status once Envoy has applied it. */
  async apply(update: Update): Promise<string> {
    const version = this.send(update);
    await until(`version ${version} is applied`, () => this.gateway.status()?.version === version);
    return this.gateway.status()?.message ?? "";
  }

  /** Replaces all hosts. */
  async hosts(...hosts: readonly Host[]): Promise<void> {
    assert.equal(await this.apply({ full: true, hosts: [...hosts] }), "");
  }

  ask(
    host: string,
    path: string,
    options: RequestOptions & { readonly body?: string } = {},
  ): Promise<Answer> {
    return ask(
      { port: this.ports.http, path, ...options, headers: { host, ...options.headers } },
      options.body,
    );
  }

  async accessLines(): Promise<Record<string, unknown>[]> {
    const text = await readFile(this.accessLog, "utf8");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export function ask(options: RequestOptions, body = ""): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: "127.0.0.1", agent: false, ...options }, (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          body: Buffer.concat(parts).toString(),
        }),
      );
    });
    asking.on("error", reject);
    asking.end(body);
  });
}

/** Returns a service "shop/NAME" whose pods listen on these ports of loopback. */
export function service(name: string, ports: readonly number[], fields: Partial<Service> = {}): Service {
  return {
    namespace: "shop",
    name,
    type: "ClusterIP",
    ports: [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080 }],
    endpoints: ports.map((port, index) => ({
      pod: `${name}-${index}`,
      node: "n1",
      podIp: "10.64.0.9",
      hostIp: "127.0.0.1",
      hostNetwork: true,
      hostPorts: [port],
    })),
    ...fields,
  };
}

export function to(serviceName: string, fields: Partial<Rule> = {}): Rule {
  const backends = [{ namespace: "shop", service: serviceName, port: 80, weight: 1 }];
  return { route: "shop/route", backends, ...fields };
}

export type { IncomingMessage, ServerResponse };
