import { X509Certificate } from "node:crypto";
import type { Certificate } from "@forage/proto/forage/operator/v1/operator";
import type { Paint, Style } from "../output/paint.ts";
import { renderEntries, renderSection } from "../output/sections.ts";
import type { Column } from "../output/table.ts";
import { age, dateTime, toMs, type WireTime } from "./timestamp.ts";

export function certificateColumns(nowMs: number): Column<Certificate>[] {
  return [
    { title: "HOSTNAME", value: ({ hostname }) => hostname },
    { title: "STATE", value: ({ state }) => state, style: certificateStyle },
    { title: "ENDS", value: ({ notAfter }) => until(notAfter, nowMs), alignRight: true },
    { title: "RENEWAL", value: ({ renewAt }) => until(renewAt, nowMs), alignRight: true },
    { title: "ISSUER", value: ({ issuer }) => issuer, wide: true },
    { title: "WHY", value: ({ message }) => message, whenFilled: true },
  ];
}

export function describeCertificate(certificate: Certificate, nowMs: number, paint: Paint): string {
  const { hostname, state, message, issuer, failures, notBefore, notAfter, renewAt } = certificate;
  const head = renderEntries(
    [
      ["Certificate", hostname],
      ["State", state],
      ["Why", message],
      ["Issuer", issuer],
      ["Valid from", dateTime(notBefore)],
      ["Valid until", both(notAfter, nowMs)],
      ["Renewal", both(renewAt, nowMs)],
      ["Failures", failures === 0 ? "" : String(failures)],
      ["Last failure", failures === 0 ? "" : `${age(certificate.failedAt, nowMs)} ago`],
      ["Next attempt", failures === 0 ? "" : both(certificate.retryAt, nowMs)],
    ],
    paint,
  );
  return head + renderSection("Chain", chainText(certificate.chainPem, paint), paint);
}

function chainText(chainPem: string, paint: Paint): string {
  const blocks = chainPem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks
    .map((pem) => {
      const { subject, issuer, serialNumber, subjectAltName, fingerprint256 } = new X509Certificate(pem);
      const line = (text: string | undefined): string => (text ?? "").replaceAll("\n", ", ");
      return renderEntries(
        [
          ["Subject", line(subject)],
          ["Names", line(subjectAltName)],
          ["Issuer", line(issuer)],
          ["Serial", serialNumber],
          ["SHA-256", fingerprint256],
        ],
        paint,
      );
    })
    .join("\n");
}

function certificateStyle({ state, message }: Certificate): Style {
  if (state === "ready") return message === "" ? "good" : "busy";
  return state === "issuing" || state === "unused" ? "busy" : "bad";
}

/** Formats the time until an expiry: `60d`, or `-3h` if it has passed. */
function until(time: WireTime | undefined, nowMs: number): string {
  if (time === undefined) return "";
  const leftMs = toMs(time) - nowMs;
  const past = { seconds: BigInt(Math.floor((nowMs - Math.abs(leftMs)) / 1000)), nanos: 0 };
  return `${leftMs < 0 ? "-" : ""}${age(past, nowMs)}`;
}

function both(time: WireTime | undefined, nowMs: number): string {
  if (time === undefined) return "";
  const left = until(time, nowMs);
  return `${dateTime(time)} (${left.startsWith("-") ? `${left.slice(1)} ago` : `in ${left}`})`;
}
