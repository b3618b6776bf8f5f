import type { TestContext } from "node:test";
import { StartWorkspaceRequest, type WorkspacePhase, type WorkspaceStatus } from "@forage/proto/core";
import { readConfig } from "../../../src/config.ts";
import { MemoryContentStore } from "../../../src/workspaces/content/memory-content-store.ts";
import { WORKSPACES_SCHEMA } from "../../../src/workspaces/settings.ts";
import { HollowAgent, type HollowAgentOptions } from "../hollow-agent.ts";
import { until } from "../until.ts";
import { startWorld, type World } from "../world.ts";
import { FakeWorkspaceNode } from "./fake-workspace-node.ts";

export interface WorkspaceWorld {
  readonly world: World;
  readonly agent: HollowAgent;
  readonly node: FakeWorkspaceNode;
  readonly content: MemoryContentStore;
  readonly calls: ReturnType<World["workspaces"]>;
  /** Waits until the instance is in the phase, and returns its status. */
  reaches(id: string, phase: WorkspacePhase): Promise<WorkspaceStatus>;
}

export interface WorkspaceWorldOptions {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly agent?: HollowAgentOptions;
}

/** A coordinator with workspaces, and a node without a host. */
export async function startWorkspaceWorld(
  t: TestContext,
  options: WorkspaceWorldOptions = {},
): Promise<WorkspaceWorld> {
  const content = new MemoryContentStore({ nowMs: () => Date.now() });
  const workspaces = WORKSPACES_SCHEMA.parse({ enabled: true, host: "example.test", ...options.settings });
  const base = readConfig(["--data-dir", "/nonexistent"], {});
  const world = await startWorld(t, {}, { workspaces, events: base.events }, { content });
  const agent = await HollowAgent.start(world, {
    tokenLabels: { "forage.dev/workspaces": "true" },
    ...options.agent,
  });
  const node = new FakeWorkspaceNode(world, agent);
  const calls = world.workspaces();
  const reaches = async (id: string, phase: WorkspacePhase): Promise<WorkspaceStatus> => {
    let last: WorkspaceStatus | undefined;
    await until(
      `workspace ${id} in phase ${phase}`,
      async () => {
        last = (await calls.describeWorkspace({ id })).status;
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
  return { world, agent, node, content, calls, reaches };
}

type Request = Parameters<typeof StartWorkspaceRequest.fromPartial>[0];

/** A valid start request. */
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
