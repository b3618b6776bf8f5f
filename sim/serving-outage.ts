import { type Random, randomOf } from "@forage/common/random";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { GATEWAY_LABEL } from "../coordinator/src/gateway/gateway-label.ts";
import { whatIsOpen } from "./fleet/convergence.ts";
import { type Outcome, outcomeOf } from "./fleet/outcome.ts";
import { imageOf } from "./fleet/programs.ts";
import { NAMESPACE } from "./fleet/script.ts";
import type { Secrets } from "./fleet/sim-coordinator.ts";
import { simTime } from "./fleet/sim-time.ts";
import { Trace } from "./fleet/trace.ts";
import { Violation } from "./fleet/violation.ts";
import { World } from "./fleet/world.ts";
import { RealNode } from "./real-node.ts";
import { SimLan } from "./serving-host.ts";
import { ServingRules, type ServingWorld, whatIsNotServed } from "./serving-rules.ts";
import { LIFE_MS, SimIssuer } from "./sim-issuer.ts";

/** Faults of the parts that serve a route and a load balancer's address. */
const OUTAGES = [
  /** The host that has the address crashes. */
  "holder-crashes",
  /** The host that has the address is cut off from the coordinator, and not from the other hosts. */
  "holder-cut-off",
  "all-cut-off",
  "gateways-crash",
  "agents-restart",
  "proxies-end",
  "coordinator-down",
  /** The coordinator's disk rejects writes. */
  "coordinator-disk-full",
  /** The disks of the hosts are full, and their agents restart. */
  "disks-full",
  /** The authority can't be reached when the certificate is due for renewal. */
  "authority-away",
] as const;

type Outage = (typeof OUTAGES)[number];

const GATEWAYS: ReadonlySet<string> = new Set(["n1", "n2"]);
const SERVICE = "web";
const HOSTNAME = "web.example.org";
/** These addresses belong to the hosts' network, but no host has one of them as its own. */
const BALANCER_IPS = "192.0.2.200-192.0.2.203";
const LOOK_MS = 1_000;
const REST_MS = 12 * 60_000;
/** The longest outage. A certificate that was due when it began is still renewed before its expiry. */
const LONGEST_MS = 150_000;
/** The earliest time at which a certificate is due for renewal. */
const DUE_MS = 0.6 * LIFE_MS;

/**
 * Plays one or two faults of the parts that serve routes and load balancers. Afterwards everything must be served as
 * desired. The seed alone determines the history.
 */
export async function simulateServingOutage(options: {
  readonly seed: number;
  readonly secrets: Secrets;
  readonly echo?: (line: string) => void;
}): Promise<Outcome> {
  const { seed, secrets, echo } = options;
  const time = simTime();
  const trace = new Trace({ nowMs: () => time.nowMs(), keep: 60, ...(echo && { echo }) });
  const random = randomOf(seed + 13_000_003);
  const outage = OUTAGES[seed % OUTAGES.length] ?? "holder-crashes";
  const lan = new SimLan();
  const issuer = new SimIssuer({ clock: time, random: randomOf(seed + 17_000_003).next });
  const world = new World({
    ...{ time, random: randomOf(seed), trace, secrets },
    services: { loadBalancerIps: [BALANCER_IPS] },
    labelsOf: (node) => (GATEWAYS.has(node) ? { [GATEWAY_LABEL]: "" } : {}),
    certificateIssuer: { issuer: () => issuer, rootPem: undefined, close: () => {} },
    makeNode: (given) => new RealNode(given, lan),
  });
  const play = new Play({ world, lan, issuer, random });
  return outcomeOf({ seed, world, trace, play: () => play.run(outage), where: outage });
}

interface PlayOptions {
  readonly world: World;
  readonly lan: SimLan;
  readonly issuer: SimIssuer;
  readonly random: Random;
}

class Play {
  readonly #options: PlayOptions;
  readonly #serving: ServingWorld;
  readonly #rules: ServingRules;

  constructor(options: PlayOptions) {
    const { world, lan } = options;
    this.#options = options;
    this.#serving = {
      ...{ lan, rules: world.rules, nowMs: () => world.time.nowMs(), gateways: GATEWAYS },
      ...{ namespace: NAMESPACE, service: SERVICE, hostname: HOSTNAME },
    };
    this.#rules = new ServingRules(this.#serving);
  }

  async run(outage: Outage): Promise<void> {
    const { world, random } = this.#options;
    this.#apply(1, 3);
    await this.#rest();
    if (outage === "authority-away") await this.#pass(DUE_MS);
    const lengthMs = 5_000 + random.below(LONGEST_MS - 5_000);
    world.trace.add("world", `${outage} for ${lengthMs} ms`);
    const ends = [this.#begin(outage)];
    await this.#pass(random.below(lengthMs));
    if (random.chance(0.5)) {
      const second = random.pick(OUTAGES);
      world.trace.add("world", `${second} meanwhile`);
      ends.push(this.#begin(second));
    }
    if (random.chance(0.5)) this.#apply(2, 1 + random.below(4));
    await this.#pass(lengthMs);
    for (const end of ends) end();
    await this.#rest();
    await this.#pass(LIFE_MS);
    await this.#rest();
  }

  /** Begins an outage. Returns a function that ends it. */
  #begin(outage: Outage): () => void {
    const { world, lan, issuer, random } = this.#options;
    const { nodes } = world;
    const gateways = nodes.filter(({ name }) => GATEWAYS.has(name));
    const holder = nodes.find(({ name }) => lan.hosts.some((it) => it.name === name && it.held().length > 0));
    switch (outage) {
      case "holder-crashes":
        holder?.crash();
        return () => holder?.boot();
      case "holder-cut-off":
        holder?.partition("up", "down");
        return () => holder?.heal();
      case "all-cut-off":
        for (const node of nodes) node.partition("up", "down");
        return () => nodes.forEach((node) => void node.heal());
      case "gateways-crash":
        for (const node of gateways) node.crash();
        return () => gateways.forEach((node) => void node.boot());
      case "agents-restart":
        for (const node of nodes) node.restartAgent(random.below(LONGEST_MS));
        return () => {};
      case "proxies-end":
        for (const host of lan.hosts) host.endProxy();
        return () => {};
      case "coordinator-down":
        world.downMs = LONGEST_MS;
        world.coordinator.die();
        return () => {
          world.downMs = undefined;
        };
      case "coordinator-disk-full":
        world.diskFull = true;
        return () => {
          world.diskFull = false;
        };
      case "disks-full":
        for (const node of nodes) node.fillDisk(LONGEST_MS);
        for (const node of nodes) node.restartAgent(random.below(10_000));
        return () => {};
      case "authority-away":
        issuer.isAway = true;
        return () => {
          issuer.isAway = false;
        };
      default:
        return outage satisfies never;
    }
  }

  /** Advances the time and checks the rules. */
  async #pass(ms: number): Promise<void> {
    const { world } = this.#options;
    const { time } = world;
    for (const untilMs = time.nowMs() + ms; time.nowMs() < untilMs; ) {
      await time.runUntil(Math.min(untilMs, time.nowMs() + LOOK_MS), () => world.violation !== undefined);
      if (world.violation !== undefined) throw world.violation;
      const broken = this.#rules.broken();
      if (broken !== undefined) throw new Violation(broken);
    }
  }

  async #rest(): Promise<void> {
    const { world } = this.#options;
    const open = () => whatIsOpen(world) ?? whatIsNotServed(this.#serving);
    for (const untilMs = world.time.nowMs() + REST_MS; open() !== undefined; ) {
      if (world.time.nowMs() >= untilMs) throw new Violation(`no rest: ${open()}`);
      await this.#pass(LOOK_MS);
    }
  }

  #apply(version: number, replicas: number): void {
    const resources = { requests: { cpu: "250m", memory: "64Mi" } };
    const ports = [{ name: "http", containerPort: 8080, protocol: "TCP" }];
    const container = { name: "main", image: imageOf("good", version), resources, ports };
    const podConfig = { annotations: { "forage.dev/progress-deadline": "3600s" } };
    const service = {
      target: SERVICE,
      type: "LoadBalancer",
      ports: [{ name: "http", port: 80, targetPort: 8080 }],
    };
    const route = { targetService: SERVICE, hostnames: [HOSTNAME], tls: { mode: "Terminate" } };
    this.#options.world.clients.apply(
      SERVICE,
      ApplyResourcesRequest.fromPartial({
        applyId: `apply-${version}`,
        namespace: NAMESPACE,
        resources: [
          {
            name: SERVICE,
            spec: { $case: "containerService", value: { scaling: { replicas }, container, podConfig } },
          },
          { name: SERVICE, spec: { $case: "service", value: service } },
          { name: SERVICE, spec: { $case: "route", value: route } },
        ],
        labels: { bundle: SERVICE },
      }),
    );
  }
}
