import type { BackOff } from "@forage/common/back-off";
import type { Log } from "@forage/common/log";
import type { EventRecorder } from "../model/event.ts";
import type { Vault } from "../objects/vault.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { CertificateStore } from "./certificate-store.ts";
import { CertificateController } from "./controller.ts";
import type { OpenedIssuer } from "./open-issuer.ts";

export interface OpenCertificatesOptions {
  readonly issuer: OpenedIssuer;
  readonly store: Store;
  readonly vault: Vault;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly backOffs?: { readonly hostname: BackOff; readonly issuer: BackOff };
}

/** Opens the controller with its stored state. */
export function openCertificates(options: OpenCertificatesOptions): Promise<CertificateController> {
  const { store, vault, events, clock, log, random, backOffs } = options;
  return CertificateController.open({
    issuerOf: (challenges) => options.issuer.issuer(challenges),
    records: new CertificateStore({ store, vault, log }),
    events,
    clock,
    log,
    random,
    ...(backOffs !== undefined && { backOffs }),
  });
}
