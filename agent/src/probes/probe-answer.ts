/** The result of one probe. */
import { messageOf } from "@forage/common/message-of";
export interface ProbeAnswer {
  /** `unknown`: the probe itself could not run, so it counts neither as success nor as failure. */
  readonly outcome: "success" | "failure" | "unknown";
  /** The status, exit code or error. Equal for equal causes. */
  readonly message: string;
  /** The first bytes of the response, on one line. May differ each time. */
  readonly detail?: string;
  /** Set if an HTTP server responded, with any status. */
  readonly httpStatus?: number;
}

// Enough for an error's first line, and short enough to be kept for every probe.
const DETAIL_CHARACTERS_MAX = 200;

/** Describes the answer for people: the outcome and the returned text. */
export function describeAnswer({ message, detail }: ProbeAnswer): string {
  return detail === undefined ? message : `${message}: "${detail}"`;
}

export function success(message: string, output = ""): ProbeAnswer {
  return { outcome: "success", message, ...detailOf(output) };
}

export function failure(message: string, output = ""): ProbeAnswer {
  return { outcome: "failure", message, ...detailOf(output) };
}

/** Returns the answer of a probe that could not run. */
export function failureOf(error: unknown): ProbeAnswer {
  return failure(messageOf(error));
}

function detailOf(output: string): { readonly detail?: string } {
  // Control characters must not reach a terminal.
  const plain = output.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  if (plain === "") return {};
  const isLong = plain.length > DETAIL_CHARACTERS_MAX;
  return { detail: isLong ? `${plain.slice(0, DETAIL_CHARACTERS_MAX)}…` : plain };
}
