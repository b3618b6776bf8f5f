import { generateKeyPairSync, randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import { mintApiToken } from "@forage/identity/api-token";
import type { Role } from "@forage/identity/authorize";
import { CertificateAuthority } from "@forage/identity/ca";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { WorkspaceManagerService } from "@forage/proto/core";
import { DestinationService } from "@forage/proto/destination";
import { AgentServiceService } from "@forage/proto/forage/agent/v1/agent";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { WorkspaceContentServiceService } from "@forage/proto/forage/workspaces/v1/content";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { HealthService } from "@forage/proto/grpc/health/v1/health";
import { Client, credentials, Metadata, type ServiceDefinition } from "@grpc/grpc-js";
import { pino } from "pino";
import { type Config, readConfig } from "../../src/config.ts";
import { type Coordinator, type CoordinatorOptions, startCoordinator } from "../../src/coordinator.ts";
import { encodeJsonRecord } from "../../src/model/codec.ts";
import { apiTokenKey } from "../../src/model/keys.ts";
import { IdentityIssuer } from "../../src/objects/identity-issuer.ts";
import { openVault } from "../../src/objects/open-vault.ts";
import { createMemoryStore, type Store } from "../../src/store/index.ts";
import { type Calls, callsOf } from "./calls.ts";
import { SkipClock } from "./skip-clock.ts";

/** A real coordinator on loopback ports with an in-memory store, and clients for each role. */
export interface World {
  readonly coordinator: Coordinator;
  readonly store: Store;
  readonly clock: SkipClock;
  readonly authority: CertificateAuthority;
  readonly address: string;
  readonly caPem: string;
  /** Returns a valid API token. */
  token(role: Role, namespaces?: "*" | readonly string[]): Promise<string>;
  /** Returns a client, by default with the admin's token. An empty token sends none. */
  forage(token?: string): Calls<typeof ForageServiceService>;
  operator(token?: string): Calls<typeof OperatorServiceService>;
  /** Returns the agents' API for a client without a node's certificate. */
  agents(token?: string): Calls<typeof AgentServiceService>;
  destination(token?: string): Calls<typeof DestinationService>;
  health(token?: string): Calls<typeof HealthService>;
  workspaces(token?: string): Calls<typeof WorkspaceManagerService>;
  workspaceContent(token?: string): Calls<typeof WorkspaceContentServiceService>;
  plainDestination(): Calls<typeof DestinationService>;
  /** Calls the function before the coordinator closes. */
  atEnd(close: () => void): void;
  /**
   * Ends the coordinator, and starts another one with the same store. `meanwhile` may change the
   * store between the two.
   */
  restart(meanwhile?: () => Promise<void>): Promise<void>;
}

const CLUSTER_ID = "test-cluster";

export async function startWorld(
  t: TestContext,
  settings: Readonly<Record<string, string>> = {},
  overrides: Partial<Config> = {},
  parts: Partial<CoordinatorOptions> = {},
): Promise<World> {
  const clock = new SkipClock();
  const store = createMemoryStore({ clock });
  const authority = await CertificateAuthority.create("test", { nowMs: clock.nowMs, randomBytes });
  const vault = await openVault([{ id: "test", bytes: randomBytes(32) }], store);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = new IdentityIssuer({ issuer: CLUSTER_ID, keys: [privateKey] });
  const config = {
    ...readConfig(["--data-dir", "/nonexistent", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"], settings),
    destination: { listen: "127.0.0.1:0" },
    rollout: { progressDeadlineSeconds: 60, placementDeadlineSeconds: 0.5, stableSeconds: 0 },
    heartbeatIntervalSeconds: 0.5,
    ...overrides,
  };
  const log = pino({ level: process.env.FORAGE_TEST_LOG ?? "silent" });
  const onFatal = (error: unknown): void => {
    throw error;
  };
  const start = () =>
    startCoordinator({
      config,
      store,
      epoch: 1,
      lineage: "lineage-1",
      clusterId: CLUSTER_ID,
      authority,
      vault,
      issuer,
      clock,
      log,
      onFatal,
      ...parts,
    });
  let coordinator = await start();
  const closers: (() => void)[] = [];
  t.after(async () => {
    for (const close of closers) close();
    await coordinator.close();
    await store.close();
  });

  const token: World["token"] = async (role, namespaces = "*") => {
    const minted = mintApiToken({
      description: "test",
      grants: [{ role, namespaces }],
      nowMs: clock.nowMs(),
      randomBytes,
    });
    await store.txn(
      [],
      [{ type: "put", key: apiTokenKey(minted.record.id), value: encodeJsonRecord(minted.record) }],
    );
    return minted.token;
  };
  const admin = await token("admin");
  const address = (): string => `127.0.0.1:${coordinator.grpc.port}`;
  const connect = <S extends ServiceDefinition>(definition: S, bearer = admin): Calls<S> => {
    const client = new Client(address(), channelCredentials({ caPem: authority.certPem }));
    closers.push(() => client.close());
    return callsOf(definition, client, bearer === "" ? new Metadata() : bearerMetadata(bearer));
  };
  return {
    get coordinator() {
      return coordinator;
    },
    store,
    clock,
    authority,
    get address() {
      return address();
    },
    caPem: authority.certPem,
    token,
    forage: (bearer) => connect(ForageServiceService, bearer),
    operator: (bearer) => connect(OperatorServiceService, bearer),
    agents: (bearer) => connect(AgentServiceService, bearer),
    health: (bearer) => connect(HealthService, bearer),
    workspaces: (bearer) => connect(WorkspaceManagerService, bearer),
    workspaceContent: (bearer) => connect(WorkspaceContentServiceService, bearer),
    destination: (bearer) => connect(DestinationService, bearer),
    plainDestination: () => {
      const client = new Client(`127.0.0.1:${coordinator.destination?.port}`, credentials.createInsecure());
      closers.push(() => client.close());
      return callsOf(DestinationService, client, new Metadata());
    },
    atEnd: (close) => closers.push(close),
    restart: async (meanwhile) => {
      await coordinator.close();
      await meanwhile?.();
      coordinator = await start();
    },
  };
}
