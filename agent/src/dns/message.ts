import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type OptAnswer,
  type Packet,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import type { DnsRecord, Lookup } from "./lookup.ts";

/** A query with one question. */
export interface Query {
  readonly id: number;
  /** The name in lower case. */
  readonly name: string;
  /** The record type: "A", "AAAA", … or "UNKNOWN_65". */
  readonly type: string;
  readonly packet: DecodedPacket;
  /** The largest datagram that the client accepts. */
  readonly datagramBytes: number;
}

export type ReadQuery =
  | { readonly type: "query"; readonly query: Query }
  /** The answer to a malformed query. Undefined if it gets none. */
  | { readonly type: "bad"; readonly answer: Buffer | undefined };

/**
 * The TTL of the cluster's answers. Short, so that clients follow changes of services, and long enough to bridge a
 * restart of the agent.
 */
export const TTL_SECONDS = 5;
/** The largest answer that a client without EDNS accepts. */
const LEAST_DATAGRAM_BYTES = 512;
/** The largest datagram that passes without fragmentation. */
const MOST_DATAGRAM_BYTES = 1_232;
const HEADER_BYTES = 12;

const FORMAT_ERROR = 1;
const SERVER_FAILURE = 2;
/** The response codes of answers that may be cached. */
export const NO_ERROR = 0;
export const NAME_ERROR = 3;
const NOT_IMPLEMENTED = 4;
const REFUSED = 5;

export function readQuery(bytes: Buffer): ReadQuery {
  if (bytes.length < HEADER_BYTES || (bytes.readUInt16BE(2) & 0x8000) !== 0)
    return { type: "bad", answer: undefined };
  const id = bytes.readUInt16BE(0);
  if (((bytes.readUInt16BE(2) >> 11) & 15) !== 0)
    return { type: "bad", answer: refusal(id, NOT_IMPLEMENTED) };
  try {
    const packet = decode(bytes);
    const [question] = packet.questions ?? [];
    if (question === undefined || packet.questions?.length !== 1)
      return { type: "bad", answer: refusal(id, FORMAT_ERROR) };
    if (question.class !== "IN") return { type: "bad", answer: refusal(id, REFUSED) };
    const asked = optOf(packet)?.udpPayloadSize ?? LEAST_DATAGRAM_BYTES;
    const datagramBytes = Math.min(MOST_DATAGRAM_BYTES, Math.max(LEAST_DATAGRAM_BYTES, asked));
    const name = question.name.toLowerCase().replace(/\.$/, "");
    return { type: "query", query: { id, name, type: question.type, packet, datagramBytes } };
  } catch {
    return { type: "bad", answer: refusal(id, FORMAT_ERROR) };
  }
}

/** Encodes the cluster's answer. The name keeps the client's spelling. */
export function answerOf(
  query: Query,
  found: Exclude<Lookup, { type: "elsewhere" }>,
  domain: string,
): Buffer {
  const asked = query.packet.questions?.[0]?.name ?? query.name;
  const written = (record: DnsRecord): Answer =>
    toAnswer(record, record.name === query.name ? asked : record.name);
  const rcode = found.type === "no-name" ? NAME_ERROR : NO_ERROR;
  return encodeAnswer(query, AUTHORITATIVE_ANSWER | rcode, {
    answers: found.type === "found" ? found.records.map(written) : [],
    additionals: found.type === "found" ? found.additionals.map(written) : [],
    authorities: found.type === "found" ? [] : [startOfAuthority(domain)],
  });
}

/** Encodes a failure because no server could be reached. */
export function failureOf(query: Query): Buffer {
  return encodeAnswer(query, SERVER_FAILURE, {});
}

/** Truncates an answer that exceeds a datagram. The client then retries over TCP. */
export function truncated(query: Query, answer: Buffer): Buffer {
  if (answer.length <= query.datagramBytes) return answer;
  const rcode = answer.readUInt16BE(2) & 15;
  return encodeAnswer(query, TRUNCATED_RESPONSE | rcode, {});
}

function encodeAnswer(
  { id, packet }: Query,
  flags: number,
  {
    answers = [],
    authorities = [],
    additionals = [],
  }: Pick<Packet, "answers" | "authorities" | "additionals">,
): Buffer {
  const desired = (packet.flags ?? 0) & RECURSION_DESIRED;
  const opt: OptAnswer[] =
    optOf(packet) === undefined
      ? []
      : [
          {
            type: "OPT",
            name: ".",
            udpPayloadSize: MOST_DATAGRAM_BYTES,
            extendedRcode: 0,
            ednsVersion: 0,
            flags: 0,
            flag_do: false,
            options: [],
          },
        ];
  return encode({
    type: "response",
    id,
    flags: flags | desired | RECURSION_AVAILABLE,
    questions: packet.questions ?? [],
    answers,
    authorities,
    additionals: [...additionals, ...opt],
  });
}

function toAnswer(record: DnsRecord, name: string): Answer {
  const ttl = TTL_SECONDS;
  switch (record.type) {
    case "A":
    case "AAAA":
      return { type: record.type, name, ttl, data: record.address };
    case "SRV":
      return {
        type: "SRV",
        name,
        ttl,
        data: { priority: 0, weight: 100, port: record.port, target: record.target },
      };
    case "PTR":
      return { type: "PTR", name, ttl, data: record.target };
    default:
      return record satisfies never;
  }
}

/** Returns the SOA record, by which clients bound the caching of a negative answer. */
function startOfAuthority(domain: string): Answer {
  const data = {
    mname: `ns.dns.${domain}`,
    rname: `hostmaster.${domain}`,
    serial: 1,
    refresh: 7_200,
    retry: 1_800,
    expire: 86_400,
    minimum: TTL_SECONDS,
  };
  return { type: "SOA", name: domain, ttl: TTL_SECONDS, data };
}

function optOf(packet: DecodedPacket): OptAnswer | undefined {
  return packet.additionals?.find((it): it is OptAnswer => it.type === "OPT");
}

function refusal(id: number, rcode: number): Buffer {
  return encode({ type: "response", id, flags: rcode });
}
