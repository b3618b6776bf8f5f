import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayUpdate, ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { systemClock } from "../../agent/src/clock.ts";
import { EnvoyPaths } from "../../agent/src/gateway/envoy/envoy-paths.ts";
import { EnvoyProxy } from "../../agent/src/gateway/envoy-proxy.ts";
import type { HostGateway } from "../../agent/src/gateway/host-gateway.ts";
import { ProgramLauncher } from "../../agent/src/gateway/launch-program.ts";
import { openGateway } from "../../agent/src/gateway/open-gateway.ts";
import { JournalKey } from "../../agent/src/journal/journal-key.ts";
import { runCommand } from "../../agent/src/network/run-command.ts";
import type { ContainerRuntime } from "../../agent/src/runtime/runtime.ts";
import { KnownServices } from "../../agent/src/services/known-services.ts";
import { ensureEnvoy } from "../../hack/lib/envoy.ts";

export type Update = Parameters<typeof GatewayUpdate.fromPartial>[0];
export type Service = NonNullable<Parameters<typeof ServiceUpdate.fromPartial>[0]["upserts"]>[number];

/** An agent's gateway with a simulated coordinator. */
export class BenchGateway {
  readonly #gateway: HostGateway;
  readonly #services: KnownServices;
  readonly #close: () => Promise<void>;
  /** The path of Envoy's configuration, by which its process is identified. */
  readonly bootstrap: string;
  #version = 0n;

  private constructor(
    gateway: HostGateway,
    services: KnownServices,
    bootstrap: string,
    close: () => Promise<void>,
  ) {
    this.#gateway = gateway;
    this.#services = services;
    this.bootstrap = bootstrap;
    this.#close = close;
  }

  static async start(httpPort: number): Promise<BenchGateway> {
    const dir = await mkdtemp(join(tmpdir(), "forage-bench-"));
    const envoy = await ensureEnvoy();
    const common = { clock: systemClock, run: runCommand };
    const services = await KnownServices.open({
      dir: join(dir, "services"),
      clock: systemClock,
      onError: fail,
    });
    const runDir = join(dir, "run");
    const gateway = await openGateway({
      ...common,
      settings: {
        ...{ envoy, image: undefined, address: "127.0.0.1", httpPort, httpsPort: httpPort + 1 },
        ...{ connectionsMax: 50_000, memoryLimitBytes: 2 ** 30, trustedProxies: 0 },
      },
      ...{ dataDir: dir, runDir, nodeName: "n1", instance: "bench", services },
      key: new JournalKey(randomBytes(32), "bench"),
      // Envoy is a program of the host, so no container runtime is needed.
      runtime: {} as ContainerRuntime,
      onEvent: () => undefined,
      noteDamage: () => undefined,
    });
    gateway.start();
    const { bootstrap } = new EnvoyPaths(join(runDir, "gateway"));
    const launcher = new ProgramLauncher({ ...common, program: envoy, instance: "bench", systemd: false });
    return new BenchGateway(gateway, services, bootstrap, async () => {
      await gateway.close();
      await services.close();
      await new EnvoyProxy({ launcher, bootstrap, log: "", clock: systemClock }).kill();
      await rm(dir, { recursive: true });
    });
  }

  serve(...upserts: readonly Service[]): void {
    this.#services.apply(ServiceUpdate.fromPartial({ full: true, upserts: [...upserts] }));
  }

  /** Resolves once the update is applied. */
  apply(update: Update): Promise<void> {
    const version = ++this.#version;
    return new Promise((resolve, reject) => {
      const stop = this.#gateway.subscribe(({ version: present, ready, message }) => {
        if (present !== version) return;
        stop();
        if (ready && message === "") resolve();
        else reject(new Error(message));
      });
      this.#gateway.apply(GatewayUpdate.fromPartial({ gateway: "default", version, ...update }));
    });
  }

  close(): Promise<void> {
    return this.#close();
  }
}

function fail(error: unknown): void {
  throw error;
}
