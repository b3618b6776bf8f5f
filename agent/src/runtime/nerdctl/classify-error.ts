import { RuntimeError, type RuntimeErrorCode } from "../runtime.ts";
import { findFatal } from "./fatal-line.ts";

export type NerdctlCall = "run" | "pull" | "other";

type Rule = readonly [pattern: RegExp, code: RuntimeErrorCode, retryable: boolean];

// Errors observed while containerd was absent, stopped or restarted during a call.
const CONTAINERD_RULES: readonly Rule[] = [
  [
    /cannot access containerd socket|dial unix|transport: |error reading from server|failed to dial .*context deadline/,
    "UNAVAILABLE",
    true,
  ],
  [/rpc error: code = (Unavailable|Canceled)|code = Unavailable|\bunavailable$/, "UNAVAILABLE", true],
  [/no such (container|object|task|image)|no running task|: not found$/i, "NOT_FOUND", false],
];

const RUN_RULES: readonly Rule[] = [
  [/is already used by ID|container ID file found/, "ALREADY_EXISTS", false],
  // The image was removed since it was last seen; pulling it again helps.
  [/^image not available/, "IMAGE_NOT_FOUND", true],
  [
    /no space left on device|too many open files|cannot allocate memory|resource temporarily unavailable/,
    "UNKNOWN",
    true,
  ],
  [
    /exec: |exec format error|no command or entrypoint|Cwd must be|chdir to cwd|unable to find (user|group)|error mounting/,
    "START_FAILED",
    false,
  ],
  [
    /must match pattern|invalid reference format|internal label|failed to parse|unable to set memory limit|seccomp profile|not a device node|stating device path/,
    "START_FAILED",
    false,
  ],
  [/OCI runtime|shim task|failed to create init process|failed to start/, "START_FAILED", true],
];

const PULL_RULES: readonly Rule[] = [
  [/no space left on device/, "UNKNOWN", true],
  [/invalid reference format|must be loaded from archive/, "IMAGE_INVALID", false],
  [/no match for platform|unsupported platform/, "IMAGE_INVALID", false],
  [
    /unexpected media type|invalid desc|invalid (manifest|config)|exec format|failed to (unpack|extract)|unknown media type/,
    "IMAGE_INVALID",
    false,
  ],
  [
    /pull access denied|authorization failed|authentication required|basic auth credentials|\b(401|403) [A-Z]|\bdenied\b/,
    "IMAGE_DENIED",
    false,
  ],
  [/unexpected status.*(404)|: not found$/, "IMAGE_NOT_FOUND", false],
  [
    /unexpected status|dial tcp|no such host|connection re|\bEOF\b|timeout|TLS|tls:|x509|deadline exceeded|network is unreachable|failed to do request/i,
    "REGISTRY_UNAVAILABLE",
    true,
  ],
];

const RULES: Readonly<Record<NerdctlCall, readonly Rule[]>> = {
  run: [...CONTAINERD_RULES.slice(0, 2), ...RUN_RULES],
  pull: [...CONTAINERD_RULES.slice(0, 2), ...PULL_RULES],
  other: CONTAINERD_RULES,
};

// Long enough for the reason; the whole output may be a page of nested causes.
const MESSAGE_MAX_LENGTH = 1_000;

/** Classifies the error of a failed nerdctl call. `stderr` may be truncated at the front. */
export function classifyError(call: NerdctlCall, stderr: string): RuntimeError {
  const said =
    findFatal(stderr)?.message ?? (stderr.trim().split("\n").at(-1) || "nerdctl failed without a message");
  for (const [pattern, code, retryable] of RULES[call]) {
    if (pattern.test(said)) return new RuntimeError(code, readable(said), { retryable });
  }
  return new RuntimeError("UNKNOWN", readable(said), { retryable: true });
}

/** Returns the message without the layers of wrapping that don't help a user. */
function readable(said: string): string {
  const text = said
    .replace(/^name-store error\n/, "")
    .replace(/^\d+ errors:\n/, "")
    .replace(/^failed to create shim task: /, "")
    .replace(/^OCI runtime (create|exec) failed: (runc (create|exec) failed|exec failed)?:? ?/, "")
    .replace(/^unable to start container process: /, "")
    .replace(/: unknown$/, "")
    .trim();
  return text.length > MESSAGE_MAX_LENGTH ? `${text.slice(0, MESSAGE_MAX_LENGTH)}…` : text;
}
