import type { Log } from "@forage/common/log";
import { ObjectFaults } from "../faults/object-faults.ts";
import type { BuiltInServices } from "../model/built-in-service.ts";
import type { EventRecorder } from "../model/event.ts";
import type { Vault } from "../objects/vault.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import type { CertificateSource } from "./certificate-source.ts";
import { type CompiledGateway, compileGateway } from "./compile.ts";
import { type Condition, conditionsOf, type GatewayNodeView } from "./conditions.ts";
import type { HostnameFindings, RouteFindings } from "./findings.ts";
import { gatewayOfNode } from "./gateway-label.ts";
import { GatewayLog } from "./gateway-log.ts";
import { type GatewayNode, gatewayNode, viewOfNode } from "./gateway-nodes.ts";
import { GatewayReader, type GatewayReaderOptions } from "./gateway-reader.ts";
import { RouteResolver } from "./resolve-route.ts";
import { type Route, routeKey } from "./route.ts";
import { RouteCertificates } from "./route-certificates.ts";
import { routeEvents } from "./route-events.ts";
import { RouteIndex } from "./route-index.ts";

export interface GatewayTableOptions {
  readonly state: ClusterView;
  readonly vault: Pick<Vault, "open">;
  readonly source: CertificateSource;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Schedules work after pending I/O, like `setImmediate`. */
  readonly defer: (run: () => void) => void;
  /** The size at which a message is sent and another one is started. */
  readonly partBytes?: number;
  readonly builtIn?: BuiltInServices | undefined;
  /** Receives errors that single routes cause. Default: they are reported only as events. */
  readonly log?: Log;
}

/** The state of a route on the gateways. */
export interface RouteStatus {
  readonly gateway: string;
  readonly hostnames: readonly HostnameFindings[];
  readonly conditions: readonly Condition[];
  readonly nodes: readonly GatewayNodeView[];
}

/** The longest delay of a timer, because the wall clock may be set in the meantime. */
const LONGEST_WAIT_MS = 3_600_000;

/**
 * Holds all routes as gateways serve them. Computes them once for all nodes of a gateway, whenever
 * one of their inputs changes.
 */
export class GatewayTable {
  readonly #options: GatewayTableOptions;
  readonly #routes: RouteIndex;
  readonly #faults: ObjectFaults;
  readonly #compiledRoutes = new RouteResolver();
  readonly #certificates: RouteCertificates;
  /** The names of the nodes of each gateway. */
  readonly #members = new Map<string, string[]>();
  readonly #logs = new Map<string, GatewayLog>();
  readonly #findings = new Map<string, RouteFindings>();
  /** The conditions that were last recorded as events, by key of the route. */
  readonly #recorded = new Map<string, readonly Condition[]>();
  /** The newest session of each node. */
  readonly #readers = new Map<string, GatewayReader>();
  readonly #readerOptions: GatewayReaderOptions = {
    logOf: (node) => this.#logOf(node),
    reported: () => this.#publishServed(),
  };
  readonly #stops: (() => void)[];
  #requested: ReadonlySet<string> = new Set();
  #served = "";
  #started = false;
  #dirty = true;
  #scheduled = false;
  #cancelTimer: () => void = () => {};

  constructor(options: GatewayTableOptions) {
    this.#options = options;
    this.#faults = new ObjectFaults({ loop: "gateway", log: options.log, events: options.events });
    this.#routes = new RouteIndex(options.state, this.#faults, options.builtIn);
    this.#certificates = new RouteCertificates(options);
    this.#settle();
    this.#started = true;
    this.#stops = [
      options.state.subscribe((changes) => this.#follow(changes)),
      options.source.subscribe(() => this.#wake()),
    ];
  }

  /** Returns the status of a route or of a service's inline route; undefined if there is none. */
  statusOf(kind: string, namespace: string, name: string): RouteStatus | undefined {
    this.#settle();
    if (kind !== "route" && kind !== "service") return undefined;
    const findings = this.#findings.get(routeKey({ kind, namespace, name }));
    if (findings === undefined) return undefined;
    const nodes = this.#nodesFor(findings);
    const { route, hostnames } = findings;
    return { gateway: route.gateway, hostnames, conditions: conditionsOf(findings, nodes), nodes };
  }

  /** Returns the state of the node as a gateway; undefined if it is not a gateway. */
  nodeState(
    name: string,
  ): (GatewayNode & { readonly gateway: string; readonly upToDate: boolean }) | undefined {
    const entry = this.#options.state.node(name);
    const gateway = gatewayOfNode(entry);
    if (entry === undefined || gateway === undefined) return undefined;
    this.#settle();
    const node = gatewayNode(entry, this.#readers.get(name)?.report);
    return { ...node, gateway, upToDate: node.version >= (this.#logs.get(gateway)?.version ?? 0) };
  }

  /** Opens the feed of a node's session. It must be closed with the session. */
  open(node: string, wake: () => void): { readonly reader: GatewayReader; readonly close: () => void } {
    const reader = new GatewayReader(node, wake, this.#readerOptions);
    this.#readers.set(node, reader);
    const close = (): void => {
      if (this.#readers.get(node) !== reader) return;
      this.#readers.delete(node);
      this.#publishServed();
    };
    return { reader, close };
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#cancelTimer();
    this.#readers.clear();
  }

  #logOf(node: string): GatewayLog | undefined {
    const gateway = gatewayOfNode(this.#options.state.node(node));
    if (gateway === undefined) return undefined;
    this.#settle();
    return this.#logs.get(gateway);
  }

  #follow(changes: readonly Change[]): void {
    let dirty = false;
    for (const change of changes) {
      if (this.#routes.follow(change)) dirty = true;
      if (change.type !== "node") continue;
      const { before, after } = change;
      // A node that becomes a gateway needs a message, and so does one that is no longer a gateway.
      if (gatewayOfNode(before) !== gatewayOfNode(after)) {
        dirty = true;
        this.#readers.get((after ?? before)?.name ?? "")?.wake();
      } else if (before?.health.ready !== after?.health.ready) this.#publishServed();
    }
    if (dirty) this.#wake();
  }

  #wake(): void {
    this.#dirty = true;
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.defer(() => {
      this.#scheduled = false;
      this.#settle();
    });
  }

  /** Evaluates pending changes, and wakes the sessions for which messages are due. */
  #settle(): void {
    if (!this.#dirty) return;
    this.#dirty = false;
    const { state, source } = this.#options;
    this.#findMembers();
    const routes = this.#routes.byGateway();
    const gateways = new Set([...this.#members.keys(), ...routes.keys()]);
    for (const name of this.#logs.keys()) if (!gateways.has(name)) this.#logs.delete(name);
    this.#findings.clear();
    const requested = new Set<string>();
    this.#certificates.begin();
    const changed = new Set<string>();
    for (const gateway of gateways) {
      const compiled = this.#compileSound(routes.get(gateway) ?? []);
      for (const [key, findings] of compiled.findings) this.#findings.set(key, findings);
      for (const hostname of compiled.requested) requested.add(hostname);
      if (this.#log(gateway).set(compiled, source.challenges())) changed.add(gateway);
    }
    this.#certificates.keep(this.#routes.secrets);
    this.#setHostnames(requested);
    this.#wakeAt(this.#certificates.nextMs);
    for (const reader of this.#readers.values()) {
      const gateway = gatewayOfNode(state.node(reader.node));
      if (gateway !== undefined && changed.has(gateway)) reader.wake();
    }
    this.#recordEvents();
    this.#publishServed();
  }

  #findMembers(): void {
    this.#members.clear();
    for (const node of this.#options.state.nodes()) {
      const gateway = gatewayOfNode(node);
      if (gateway !== undefined)
        this.#members.set(gateway, [...(this.#members.get(gateway) ?? []), node.name]);
    }
  }

  /**
   * Compiles the routes. A route that causes an error is omitted with the error as its reason, and
   * the others are served.
   */
  #compileSound(routes: readonly Route[]): CompiledGateway {
    try {
      return this.#compile(routes);
    } catch (error) {
      const sound = routes.filter(({ kind, namespace, name }) =>
        this.#faults.attempt({ kind, namespace, name }, () =>
          this.#compile(
            routes.filter((it) => it.kind === kind && it.namespace === namespace && it.name === name),
          ),
        ),
      );
      // No route fails on its own, so it is unknown which one causes the error.
      if (sound.length === routes.length) throw error;
      return this.#compile(sound);
    }
  }

  #compile(routes: readonly Route[]): CompiledGateway {
    const nowMs = this.#options.clock.nowMs();
    return compileGateway({
      routes,
      resolve: (route, portsOf) => this.#compiledRoutes.of(route, portsOf),
      portsOf: (namespace, service) => this.#routes.portsOf(namespace, service),
      certificateOf: (route, hostname) => this.#certificates.of(route, hostname, nowMs),
    });
  }

  #log(gateway: string): GatewayLog {
    const known = this.#logs.get(gateway);
    if (known !== undefined) return known;
    const { clock, partBytes } = this.#options;
    // The first version exceeds those of a former coordinator.
    const log = new GatewayLog(gateway, { firstVersion: clock.nowMs(), partBytes });
    this.#logs.set(gateway, log);
    return log;
  }

  #setHostnames(requested: ReadonlySet<string>): void {
    const same =
      requested.size === this.#requested.size && [...requested].every((name) => this.#requested.has(name));
    if (same) return;
    this.#requested = requested;
    this.#options.source.setHostnames(requested);
  }

  #wakeAt(atMs: number | undefined): void {
    this.#cancelTimer();
    this.#cancelTimer = () => {};
    if (atMs === undefined) return;
    const { clock } = this.#options;
    const delayMs = Math.min(Math.max(atMs - clock.nowMs(), 1), LONGEST_WAIT_MS);
    this.#cancelTimer = clock.schedule(delayMs, () => this.#wake());
  }

  #recordEvents(): void {
    for (const key of this.#recorded.keys()) if (!this.#findings.has(key)) this.#recorded.delete(key);
    for (const [key, findings] of this.#findings) {
      const conditions = conditionsOf(findings, this.#nodesFor(findings));
      const news = routeEvents(findings.route, this.#recorded.get(key) ?? [], conditions);
      this.#recorded.set(key, conditions);
      // Conditions that already held before the start are not events.
      if (this.#started) for (const event of news) this.#options.events.record(event);
    }
  }

  /** Passes on the tokens of challenges that all ready gateways answer. */
  #publishServed(): void {
    // Challenges that were not sent to any gateway yet would count as served. Settling calls this
    // method again.
    if (this.#dirty) return;
    const { source } = this.#options;
    const nodes = [...this.#members].flatMap(([gateway, names]) =>
      this.#nodes(names).map((node) => ({ node, needed: this.#logs.get(gateway)?.challengesVersion ?? 0 })),
    );
    const answering = nodes.filter(({ node }) => node.connected && node.ready);
    const all = answering.length > 0 && answering.every(({ node, needed }) => node.version >= needed);
    const tokens = all ? source.challenges().map(({ token }) => token) : [];
    const served = tokens.join(" ");
    if (served === this.#served) return;
    this.#served = served;
    source.served(new Set(tokens));
  }

  #nodesFor({ route, hostnames }: RouteFindings): GatewayNodeView[] {
    const log = this.#logs.get(route.gateway);
    const needed = hostnames.flatMap(({ hostname, certificate }) => [
      log?.versionOf("host", hostname) ?? 0,
      certificate === "" ? 0 : (log?.versionOf("certificate", certificate) ?? 0),
    ]);
    const version = needed.reduce((a, b) => Math.max(a, b), 0);
    const names = hostnames.map(({ hostname }) => hostname);
    return this.#nodes(this.#members.get(route.gateway) ?? []).map((node) =>
      viewOfNode(node, names, version),
    );
  }

  #nodes(names: readonly string[]): GatewayNode[] {
    return names.flatMap((name) => {
      const entry = this.#options.state.node(name);
      return entry === undefined ? [] : gatewayNode(entry, this.#readers.get(name)?.report);
    });
  }
}
