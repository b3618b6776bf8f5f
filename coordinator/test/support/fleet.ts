import assert from "node:assert/strict";
import type { Node, Pod } from "@forage/proto/forage/operator/v1/operator";
import type { Config } from "../../src/config.ts";
import { HollowAgent } from "./hollow-agent.ts";
import { aRequest, watchToEnd } from "./requests.ts";
import { until } from "./until.ts";
import { startWorld, type World } from "./world.ts";

/** Settings with which losses are detected and handled within seconds. */
export const QUICK_LOSSES = {
  heartbeatIntervalSeconds: 0.5,
  nodes: {
    unreachableSeconds: 1.5,
    startGraceSeconds: 60,
    unreachableTolerationSeconds: 1,
    recoveryGraceSeconds: 1,
    notReadyTolerationSeconds: 300,
  },
};

/** A coordinator with connected hollow agents of these names. */
export class Fleet {
  readonly world: World;
  readonly agents = new Map<string, HollowAgent>();
  #applies = 0;
  /** One client for all calls, because tests poll. */
  #operator: ReturnType<World["operator"]>;

  private constructor(world: World) {
    this.world = world;
    this.#operator = world.operator();
  }

  static async start(
    t: Parameters<typeof startWorld>[0],
    names: readonly string[],
    overrides: Partial<Config> = {},
  ): Promise<Fleet> {
    const fleet = new Fleet(await startWorld(t, {}, overrides));
    for (const name of names) fleet.agents.set(name, await HollowAgent.start(fleet.world, { name }));
    await fleet.ready(names);
    return fleet;
  }

  async ready(names: readonly string[]): Promise<void> {
    await until(`${names.join()} are ready`, async () => {
      const nodes = await this.nodes();
      return names.every((name) => nodes.find((node) => node.name === name)?.ready);
    });
  }

  get operator(): ReturnType<World["operator"]> {
    return this.#operator;
  }

  agent(name: string): HollowAgent {
    const agent = this.agents.get(name);
    assert.ok(agent, name);
    return agent;
  }

  async join(name: string): Promise<HollowAgent> {
    const agent = await HollowAgent.start(this.world, { name });
    this.agents.set(name, agent);
    await this.ready([name]);
    return agent;
  }

  /** Starts another process of the agent, which has kept its pods. */
  reconnect(name: string): HollowAgent {
    const before = this.agent(name);
    const agent = before.again({ pods: [...before.assignments.values()].map((pod) => before.running(pod)) });
    this.agents.set(name, agent);
    return agent;
  }

  async restart(): Promise<void> {
    await this.world.restart();
    this.#operator = this.world.operator();
    for (const name of this.agents.keys()) this.reconnect(name);
    await this.ready([...this.agents.keys()]);
  }

  async nodes(): Promise<Node[]> {
    return (await this.#operator.listNodes({})).nodes;
  }

  async node(name: string): Promise<Node> {
    const node = (await this.nodes()).find((it) => it.name === name);
    assert.ok(node, name);
    return node;
  }

  /** Returns all pods, including stopping ones. */
  async allPods(): Promise<Pod[]> {
    const everything = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };
    return (await this.#operator.listPods(everything)).pods;
  }

  /** Returns the pods that are not stopping. */
  async pods(workload?: string): Promise<Pod[]> {
    const pods = await this.allPods();
    return pods.filter((pod) => !pod.stopping && (workload === undefined || pod.workloadName === workload));
  }

  async apply(...resources: Parameters<typeof aRequest>[1]): Promise<void> {
    const { rolloutId } = await this.world
      .forage()
      .applyResources(aRequest(`a${++this.#applies}`, resources));
    const lines = await watchToEnd(this.world, rolloutId);
    assert.match(lines.at(-1) ?? "", /SUCCEEDED/, lines.join("\n"));
  }

  async cordon(name: string, unschedulable = true): Promise<void> {
    await this.#operator.updateNode({
      name,
      unschedulable,
      setTaints: [],
      removeTaints: [],
      setLabels: {},
      removeLabels: [],
    });
  }

  /**
   * Counts ready pods repeatedly until the returned function is called, which returns the lowest
   * count.
   */
  watchLeast(): () => Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    let over = false;
    const counting = (async () => {
      while (!over) {
        const pods = await this.pods();
        least = Math.min(least, pods.filter((pod) => pod.status?.ready).length);
      }
    })();
    return async () => {
      over = true;
      await counting;
      return least;
    };
  }

  /** Returns the reasons of events of the cluster and its nodes. */
  async reasons(): Promise<string[]> {
    const request = { namespace: "", filter: undefined, after: 0n, limit: 0 };
    return (await this.#operator.listEvents(request)).events.map(({ reason }) => reason);
  }
}
