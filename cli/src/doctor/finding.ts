export type FindingState = "ok" | "warning" | "problem" | "unknown";

/** The result of one check. */
export interface Finding {
  /** The examined object: `client`, `coordinator`, `node/NAME`, or a certificate. */
  readonly subject: string;
  /** The name of the check in kebab case, such as `clock`. */
  readonly check: string;
  readonly state: FindingState;
  readonly message: string;
  /** The operator's next step; empty if there is no problem. */
  readonly remedy: string;
}

const DAY_MS = 86_400_000;

/**
 * Returns the finding about the expiry of a certificate: a problem after it, a warning in the days
 * before it.
 */
export function lifetimeFinding(
  subject: string,
  {
    endsMs,
    nowMs,
    warnDays,
    remedy,
  }: {
    readonly endsMs: number;
    readonly nowMs: number;
    readonly warnDays: number;
    readonly remedy: string;
  },
): Finding {
  const leftMs = endsMs - nowMs;
  const date = new Date(endsMs).toISOString().slice(0, 10);
  if (leftMs <= 0)
    return { subject, check: "certificate", state: "problem", message: `expired on ${date}`, remedy };
  const days = Math.floor(leftMs / DAY_MS);
  const isNear = days < warnDays;
  return {
    subject,
    check: "certificate",
    state: isNear ? "warning" : "ok",
    message: `valid for ${days} more ${days === 1 ? "day" : "days"}, until ${date}`,
    remedy: isNear ? remedy : "",
  };
}
