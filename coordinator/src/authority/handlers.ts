import { X509Certificate } from "node:crypto";
import type { Log } from "@forage/common/log";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { type CallContext, callerName } from "../rpc/caller.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Clock } from "../time/clock.ts";
import type { AuthorityRoll, AuthorityRoot } from "./authority.ts";
import { dependents } from "./dependents.ts";

export interface AuthorityHandlerOptions {
  /**
   * The replacement of the authority; undefined if it can't be replaced while the coordinator runs.
   */
  readonly authorityRoll: AuthorityRoll | undefined;
  /** Returns the roots, oldest first. */
  readonly authorityRoots: () => readonly AuthorityRoot[];
  readonly certificateGraceMs: number;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
}

export interface AuthorityHandlers {
  listAuthorities(): Promise<wire.ListAuthoritiesResponse>;
  rollAuthority(
    request: wire.RollAuthorityRequest,
    context: CallContext,
  ): Promise<wire.RollAuthorityResponse>;
  retireAuthority(
    request: wire.RetireAuthorityRequest,
    context: CallContext,
  ): Promise<wire.RetireAuthorityResponse>;
}

/** The most names in an error. */
const MAX_NAMED_NODES = 20;

/** Returns the RPCs that list and replace the cluster's certificate authority. */
export function authorityHandlers(options: AuthorityHandlerOptions): AuthorityHandlers {
  let isBusy = false;
  const change = async (run: (roll: AuthorityRoll) => Promise<void>): Promise<void> => {
    if (isBusy) throw new CoordinatorError("ABORTED", "the authority is being changed: try again");
    isBusy = true;
    try {
      await run(rollOf(options));
    } finally {
      isBusy = false;
    }
  };
  return {
    listAuthorities: async () => ({ authorities: authorityViews(options) }),
    rollAuthority: async (_, { caller }) => {
      await change((roll) => roll.begin());
      options.log.info({ event: "authority-rolled", by: callerName(caller) });
      return { authorities: authorityViews(options) };
    },
    retireAuthority: async (_, { caller }) => {
      await change(async (roll) => {
        assertNoDependents(options);
        await roll.finish();
      });
      options.log.info({ event: "authority-retired", by: callerName(caller) });
      return { authorities: authorityViews(options) };
    },
  };
}

function rollOf({ authorityRoll }: AuthorityHandlerOptions): AuthorityRoll {
  if (authorityRoll !== undefined) return authorityRoll;
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    "this coordinator can't replace its authority while it runs",
  );
}

function assertNoDependents(options: AuthorityHandlerOptions): void {
  const nodes = dependentNodes(options);
  if (nodes.length === 0) return;
  const named = nodes.slice(0, MAX_NAMED_NODES).join(", ");
  const count = nodes.length === 1 ? "1 node depends" : `${nodes.length} nodes depend`;
  const more = nodes.length > MAX_NAMED_NODES ? ` and ${nodes.length - MAX_NAMED_NODES} more` : "";
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    `${count} on the older authority: ${named}${more}; connected nodes renew their certificates by themselves; remove those that never return with \`forage node remove NODE\``,
  );
}

function dependentNodes({ authorityRoll, certificateGraceMs, state, clock }: AuthorityHandlerOptions) {
  const nextPin = authorityRoll?.nextPin;
  if (nextPin === undefined) return [];
  return dependents(state.nodes(), { nextPin, graceMs: certificateGraceMs, nowMs: clock.nowMs() });
}

function authorityViews(options: AuthorityHandlerOptions): wire.Authority[] {
  const nodes = dependentNodes(options);
  return options.authorityRoots().map((root) => authorityView(root, root.forNodes ? [] : nodes));
}

function authorityView(
  { pin, certPem, forServers, forNodes }: AuthorityRoot,
  nodes: readonly string[],
): wire.Authority {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  return {
    pin,
    certificatePem: certPem,
    notBefore: toTimestamp(validFromDate.getTime()),
    notAfter: toTimestamp(validToDate.getTime()),
    forServers,
    forNodes,
    nodes: [...nodes],
  };
}
