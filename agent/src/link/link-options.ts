import type { ClaimRef, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { ImagePrefetcher } from "../images/image-prefetcher.ts";
import type { Journal } from "../journal/journal.ts";
import type { PodMeter } from "../metrics/pod-meter.ts";
import type { ServiceNetwork } from "../service-network.ts";
import type { AssignedPods } from "./assigned-pods.ts";
import type { AssignmentReader } from "./assignment-reader.ts";
import type { openAgentClient } from "./client.ts";
import type { Connection } from "./connection.ts";
import type { CoordinatorAddresses } from "./coordinator-addresses.ts";
import type { EnrollOptions } from "./enroll.ts";
import type { LinkError } from "./link-error.ts";
import type { LinkState } from "./link-state.ts";
import type { NodeSource } from "./node-source.ts";
import type { StatusOutbox } from "./status-outbox.ts";

export interface LinkOptions {
  readonly enroll: EnrollOptions;
  readonly agentVersion: string;
  readonly bootId: string;
  /** An id that is new with every start of the agent. */
  readonly sessionId: string;
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly journal: Journal;
  readonly pods: AssignedPods;
  readonly reader: AssignmentReader;
  readonly outbox: StatusOutbox;
  readonly node: NodeSource;
  /** Measures pods on request. */
  readonly meter: Pick<PodMeter, "ask" | "ended">;
  /** Pulls images in advance on request. */
  readonly prefetcher: Pick<ImagePrefetcher, "ask" | "ended">;
  readonly services: ServiceNetwork;
  readonly gateway: Gateway;
  readonly removeClaims: (claims: readonly ClaimRef[]) => void;
  readonly openSession: (request: SessionRequest, connection: Connection) => void;
  /** Called with the reason why assignments can't be written to disk; undefined after a successful write. */
  readonly assignmentsHealth: (problem: string | undefined) => void;
  readonly events: LinkEvents;
  /** The cluster's coordinators. `enroll` has the address of the current one. Default: there is only one. */
  readonly coordinators?: Pick<CoordinatorAddresses, "all" | "learn" | "moveOn" | "redraw">;
  /** Opens the channel that a connection uses. Default: mutual TLS to the coordinator's address. */
  readonly openClient?: typeof openAgentClient;
}

export interface LinkEvents {
  changed(state: LinkState): void;
  renewed(endsMs: number): void;
  renewalFailed(error: LinkError): void;
}
