import {
  ConnectResponse,
  GatewayCertificate,
  type GatewayChallenge,
  GatewayHost,
  GatewayUpdate,
} from "@forage/proto/forage/agent/v1/agent";
import { type Delta, DeltaLog } from "../feed/delta-log.ts";
import type { CompiledGateway } from "./compile.ts";

type Item =
  | { readonly type: "host"; readonly host: GatewayHost }
  | { readonly type: "certificate"; readonly certificate: GatewayCertificate }
  | { readonly type: "challenges"; readonly challenges: readonly GatewayChallenge[] };

/** The versioned configuration of one gateway, for all of its nodes. */
export class GatewayLog {
  readonly #gateway: string;
  readonly #log: DeltaLog<Item>;
  #challenges: readonly GatewayChallenge[] = [];

  constructor(
    gateway: string,
    { firstVersion, partBytes }: { firstVersion: number; partBytes?: number | undefined },
  ) {
    this.#gateway = gateway;
    this.#log = new DeltaLog({ encode, message: (delta) => this.#message(delta), firstVersion, partBytes });
  }

  get version(): number {
    return this.#log.version;
  }

  after(sent: number | undefined): ReturnType<DeltaLog<Item>["after"]> {
    return this.#log.after(sent);
  }

  /** Returns the version in which the host's rules, or the certificate, last changed. */
  versionOf(kind: "host" | "certificate", name: string): number {
    return this.#log.versionOf(`${kind}/${name}`) ?? this.#log.version;
  }

  get challengesVersion(): number {
    return this.#log.versionOf("challenges") ?? this.#log.version;
  }

  /** Replaces the entries. Reports whether any changed. */
  set(
    { hosts, certificates }: Pick<CompiledGateway, "hosts" | "certificates">,
    challenges: readonly GatewayChallenge[],
  ): boolean {
    this.#challenges = challenges;
    this.#log.set("challenges", { type: "challenges", challenges });
    for (const key of [...this.#log.keys()]) {
      const { kind, name } = splitKey(key);
      if (kind === "host" && !hosts.has(name)) this.#log.set(key, undefined);
      if (kind === "certificate" && !certificates.has(name)) this.#log.set(key, undefined);
    }
    for (const [id, certificate] of certificates)
      this.#log.set(`certificate/${id}`, { type: "certificate", certificate });
    for (const [hostname, host] of hosts) this.#log.set(`host/${hostname}`, { type: "host", host });
    return this.#log.commit();
  }

  #message({ full, upserts, removals, more, version }: Delta<Item>): Buffer {
    const removed = (kind: string): string[] =>
      removals.flatMap((key) => (splitKey(key).kind === kind ? splitKey(key).name : []));
    const value: GatewayUpdate = {
      full,
      gateway: this.#gateway,
      hosts: upserts.flatMap((item) => (item.type === "host" ? item.host : [])),
      removedHosts: removed("host"),
      certificates: upserts.flatMap((item) => (item.type === "certificate" ? item.certificate : [])),
      removedCertificates: removed("certificate"),
      challenges: more ? [] : [...this.#challenges],
      more,
      version: BigInt(version),
    };
    return encodeUpdate(value);
  }
}

function encodeUpdate(value: GatewayUpdate): Buffer {
  return Buffer.from(ConnectResponse.encode({ message: { $case: "gateway", value } }).finish());
}

/**
 * The message for a node that is not a gateway. It is encoded once, because each stream keeps its last message, and with it
 * 8 kB of Buffer's pool.
 */
export const NO_GATEWAY: Buffer = encodeUpdate(GatewayUpdate.fromPartial({ full: true }));

function encode(item: Item): Uint8Array {
  switch (item.type) {
    case "host":
      return GatewayHost.encode(item.host).finish();
    case "certificate":
      return GatewayCertificate.encode(item.certificate).finish();
    case "challenges":
      return GatewayUpdate.encode(GatewayUpdate.fromPartial({ challenges: [...item.challenges] })).finish();
    default:
      return item satisfies never;
  }
}

function splitKey(key: string): { readonly kind: string; readonly name: string } {
  const at = key.indexOf("/");
  return at < 0 ? { kind: key, name: "" } : { kind: key.slice(0, at), name: key.slice(at + 1) };
}
