import type { TestContext } from "node:test";
import { StartWorkspaceRequest, type WorkspacePhase, type WorkspaceStatus } from "@forage/proto/core";
import { readConfig } from "../../../src/config.ts";
import { MemoryContentStore } from "../../../src/workspaces/content/memory-content-store.ts";
import { WORKSPACES_SCHEMA, type WorkspaceSettings } from "../../../src/workspaces/settings.ts";
import { HollowAgent, type HollowAgentOptions } from "../hollow-agent.ts";
import { until } from "../until.ts";
import { startWorld, type World } from "../world.ts";
import { FakeWorkspaceNode } from "./fake-workspace-node.ts";
import { grpcNodeTransport } from "./grpc-node-transport.ts";

export interface WorkspaceWorld {
  readonly world: World;
  readonly agent: HollowAgent;
  readonly node: FakeWorkspaceNode;
  readonly content: MemoryContentStore;
  /**
   * The settings, which tests may change, because the coordinator reads them whenever it needs
   * them.
   */
  readonly settings: WorkspaceSettings;
  readonly calls: ReturnType<World["workspaces"]>;
  /** Waits until the instance is in the phase. Returns its status. */
  reaches(id: string, phase: WorkspacePhase): Promise<WorkspaceStatus>;
}

export interface WorkspaceWorldOptions {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly agent?: HollowAgentOptions;
  readonly content?: MemoryContentStore;
  /** The interval of heartbeats. Default: two hours. Tests that lose a node need a short one. */
  readonly heartbeatSeconds?: number;
}

/** Longer than an hour, so that a test can skip an hour while nodes stay reachable. */
const HEARTBEAT_SECONDS = 7_200;

/** Starts a coordinator with workspaces, and a node without a host. */
export async function startWorkspaceWorld(
  t: TestContext,
  options: WorkspaceWorldOptions = {},
): Promise<WorkspaceWorld> {
  const content = options.content ?? new MemoryContentStore({ nowMs: () => Date.now() });
  const workspaces = WORKSPACES_SCHEMA.parse({ enabled: true, host: "example.test", ...options.settings });
  const base = readConfig(["--data-dir", "/nonexistent"], {});
  const heartbeatIntervalSeconds = options.heartbeatSeconds ?? HEARTBEAT_SECONDS;
  const nodes = { ...base.nodes, unreachableSeconds: 1.5 };
  const overrides = {
    ...{ workspaces, events: base.events, heartbeatIntervalSeconds },
    ...(options.heartbeatSeconds !== undefined && { nodes }),
  };
  const world = await startWorld(t, {}, overrides, { content });
  const agent = await HollowAgent.start(world, {
    tokenLabels: { "forage.dev/workspaces": "true" },
    ...options.agent,
  });
  const node = new FakeWorkspaceNode(grpcNodeTransport(world, agent));
  const calls = world.workspaces();
  let [address, presentCalls] = [world.address, calls];
  /**
   * Returns clients of the coordinator that serves at present, which may have started after the
   * first one.
   */
  const present = (): typeof calls => {
    if (world.address !== address) [address, presentCalls] = [world.address, world.workspaces()];
    return presentCalls;
  };
  const reaches = async (id: string, phase: WorkspacePhase): Promise<WorkspaceStatus> => {
    let last: WorkspaceStatus | undefined;
    await until(
      `workspace ${id} in phase ${phase}`,
      async () => {
        last = (await present().describeWorkspace({ id })).status;
        return last?.phase === phase;
      },
      15_000,
    ).catch((error: unknown) => {
      throw new Error(
        `${String(error)}; it is ${JSON.stringify(last, (_, it) => (typeof it === "bigint" ? String(it) : it))}`,
      );
    });
    if (last === undefined) throw new Error("no status");
    return last;
  };
  return { world, agent, node, content, settings: workspaces, calls, reaches };
}

type Request = Parameters<typeof StartWorkspaceRequest.fromPartial>[0];

/** Returns a valid start request. */
export function aStart(change: Request = {}): StartWorkspaceRequest {
  const { id = "instance-1", metadata, spec, ...rest } = change;
  return StartWorkspaceRequest.fromPartial({
    id,
    servicePrefix: "prefix-1",
    ...rest,
    metadata: { owner: "owner-1", metaId: "meta-1", ...metadata },
    spec: {
      workspaceImage: "registry.example/workspace:1",
      workspaceLocation: "project",
      initializer: { spec: { $case: "empty", value: {} } },
      ...spec,
    },
  });
}
