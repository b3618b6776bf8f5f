import { EnrollmentServiceService } from "@forage/proto/forage/agent/v1/agent";
import {
  CoordinatorEnrollmentServiceService,
  CoordinatorServiceService,
  FollowerServiceService,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { HealthService } from "@forage/proto/grpc/health/v1/health";
import { ServerReflectionService } from "@forage/proto/grpc/reflection/v1/reflection";
import { ServerReflectionService as ServerReflectionAlphaService } from "@forage/proto/grpc/reflection/v1alpha/reflection";
import type { Server, ServiceDefinition } from "@grpc/grpc-js";
import { type ForageOptions, forageService } from "./api/forage/service.ts";
import { fetchImageHandler } from "./api/operator/fetch-image.ts";
import { type OperatorOptions, operatorService } from "./api/operator/service.ts";
import type { DestinationOptions } from "./destination/get.ts";
import { relayCaller } from "./destination/relay-caller.ts";
import { destinationService, SharedDestinationService } from "./destination/service.ts";
import { type ServeHttpOptions, serveHttp } from "./http/passed/serve-http.ts";
import { SharedAgentService } from "./link/agent-service.ts";
import { type ConnectOptions, connect } from "./link/connect.ts";
import { type EnrollOptions, join, renew } from "./link/enroll.ts";
import type { SessionBroker } from "./link/session-broker.ts";
import type { Notifications } from "./notifications/open-notifications.ts";
import type { CoordinatorTable } from "./peers/coordinator-table.ts";
import { type EnrollCoordinatorOptions, enrollCoordinator } from "./peers/enroll-coordinator.ts";
import { type HealthOptions, healthService } from "./rpc/health.ts";
import { reflectionService } from "./rpc/reflection.ts";
import { type ServeOptions, serve } from "./rpc/serve.ts";
import { UnknownFields } from "./rpc/unknown-fields.ts";

/** A service of an optional component. */
export interface FurtherService {
  readonly definition: ServiceDefinition;
  /** Registers the service. Every call passes the checks of `serve`. */
  readonly addTo: (server: Server, serving: ServeOptions) => void;
}

export interface ServicesOptions {
  readonly forage: ForageOptions;
  readonly operator: OperatorOptions;
  readonly connect: ConnectOptions;
  readonly enroll: EnrollOptions;
  readonly enrollCoordinator: EnrollCoordinatorOptions;
  readonly destination: DestinationOptions;
  readonly broker: SessionBroker;
}

/**
 * The dependencies of the TLS port's services. Simulations have no port and no other coordinators.
 */
export interface PortServicesOptions extends ServicesOptions {
  readonly coordinators: CoordinatorTable;
  readonly notifications: Notifications;
  readonly support: NonNullable<OperatorOptions["support"]>;
  readonly http: ServeHttpOptions;
}

/** Adds every service of the TLS port. The permissions are in `rpc/access.ts`. */
export function addServices(
  server: Server,
  options: PortServicesOptions,
  serving: ServeOptions,
  further: readonly FurtherService[] = [],
): void {
  const { coordinators } = options;
  // One object for all streams, because there are thousands of them.
  const connecting = { ...options.connect, coordinators };
  // Only services with these options refuse unknown fields. Agents of an adjacent version,
  // Linkerd's proxies and clients of standard services may send more fields, which are ignored.
  const checking = { ...serving, unknownFields: new UnknownFields() };
  serve(server, ForageServiceService, forageService(options.forage), checking);
  serve(
    server,
    OperatorServiceService,
    operatorService({
      ...options.operator,
      coordinators: options.coordinators,
      notifications: options.notifications,
      support: options.support,
    }),
    checking,
  );
  serve(
    server,
    EnrollmentServiceService,
    { join: (request, context) => join(request, context, options.enroll) },
    serving,
  );
  serve(
    server,
    CoordinatorEnrollmentServiceService,
    { join: (request, context) => enrollCoordinator(request, context, options.enrollCoordinator) },
    serving,
  );
  serve(
    server,
    CoordinatorServiceService,
    {
      report: async (request, { caller }) => options.coordinators.report(request, caller),
      http: (requests, context) => serveHttp(requests, context, options.http),
    },
    serving,
  );
  serve(
    server,
    SharedAgentService,
    {
      connect: (requests, context) => connect(requests, context, connecting),
      renew: (request, context) => renew(request, context, options.enroll),
      serve: (requests, context) => options.broker.serve(requests, context),
      fetchImage: fetchImageHandler({ ...options.connect, broker: options.broker }),
    },
    serving,
  );
  const { store, clock } = options.enroll;
  for (const { addTo } of further) addTo(server, serving);
  const definitions = [...servedDefinitions, ...further.map(({ definition }) => definition)];
  addStandardServices(server, definitions, { store, clock }, serving);
  addDestination(server, options.destination, serving);
}

/** Adds the standard services that describe the port itself. */
export function addStandardServices(
  server: Server,
  definitions: readonly ServiceDefinition[],
  health: Omit<HealthOptions, "services">,
  serving: ServeOptions,
): void {
  const services = new Set(definitions.flatMap(namesOf));
  serve(server, HealthService, healthService({ ...health, services }), serving);
  // The two versions differ only in the name of their package.
  const reflection = reflectionService([...services]);
  serve(server, ServerReflectionService, reflection, serving);
  serve<typeof ServerReflectionAlphaService>(server, ServerReflectionAlphaService, reflection, serving);
}

export function addDestination(server: Server, options: DestinationOptions, serving: ServeOptions): void {
  const { state } = options.directory;
  const runsPodsOf = (node: string, namespace: string): boolean =>
    state.podsOnNode(node).some(({ record }) => record.namespace === namespace);
  serve(server, SharedDestinationService, destinationService(options), {
    ...serving,
    identify: (call) => relayCaller(serving.identify(call), call.metadata, runsPodsOf),
  });
}

/** The services that a follower serves itself. */
export const ownDefinitions: readonly ServiceDefinition[] = [
  SharedDestinationService,
  HealthService,
  ServerReflectionService,
  ServerReflectionAlphaService,
];

/** The services that only a follower serves. */
export const followerDefinitions: readonly ServiceDefinition[] = [FollowerServiceService];

/** The services that only the leader serves, and that no follower passes on. */
export const leaderDefinitions: readonly ServiceDefinition[] = [CoordinatorServiceService];

/** The served methods, for the test that every method has an entry in the access table. */
export const servedDefinitions: readonly ServiceDefinition[] = [
  ForageServiceService,
  OperatorServiceService,
  EnrollmentServiceService,
  CoordinatorEnrollmentServiceService,
  CoordinatorServiceService,
  SharedAgentService,
  SharedDestinationService,
  HealthService,
  ServerReflectionService,
  ServerReflectionAlphaService,
];

/**
 * Returns the service names in the paths of a definition, such as `forest.v1.ForageService` for
 * `/forest.v1.ForageService/ApplyResources`.
 */
function namesOf(definition: ServiceDefinition): string[] {
  return Object.values(definition).map(({ path }) => path.split("/")[1] ?? "");
}
