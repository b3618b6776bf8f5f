import { RuntimeError } from "../runtime.ts";

/** Passes a container's environment to nerdctl outside its arguments. */
export interface EnvPassing {
  /** The text for `--env-file`: one `NAME=VALUE` on each line. */
  readonly file: string;
  /** Values that the file can't hold. They are set in nerdctl's own environment and passed by `--env=NAME`. */
  readonly inherited: Readonly<Record<string, string>>;
}

// nerdctl reads the file line by line into a buffer of 64 KiB and fails on a longer line.
const FILE_LINE_MAX_BYTES = 60_000;

// execve rejects a longer NAME=VALUE (MAX_ARG_STRLEN), in the container as on the host.
const VARIABLE_MAX_BYTES = 128 * 1024 - 1;

/*
 * Names that nerdctl, its OCI hooks (which get a copy of nerdctl's environment and run as root on the host), the C library
 * or Go's runtime obey. A user's value must never reach them: LD_PRELOAD there would run the user's code on the host.
 * Gathered from every Getenv and LookupEnv of nerdctl 2.3 and its modules, and from ld.so(8) and environ(7).
 */
const OBEYED_NAMES = new Set(
  (
    "PATH HOME USER LOGNAME SHELL PWD OLDPWD TERM TMPDIR TZ TZDIR ZONEINFO LANG LANGUAGE NLSPATH LOCPATH GCONV_PATH GETCONF_DIR " +
    "HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV_HOST_CONF SUDO_USER TAR CI DEBUG_HTTP2_GOROUTINES NETCONFPATH " +
    "NOTIFY_SOCKET WATCHDOG_PID WATCHDOG_USEC JOURNAL_STREAM EXIT_STATUS SERVICE_RESULT SOURCE_DATE_EPOCH " +
    "SSL_CERT_FILE SSL_CERT_DIR REQUEST_METHOD HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY FTP_PROXY SOCKS_PROXY " +
    "GODEBUG GOGC GOMEMLIMIT GOMAXPROCS GOTRACEBACK GOROOT GOFLAGS GOCOVERDIR GOTMPDIR GOPROTODEBUG GOWASIRUNTIME GOFIPS140"
  ).split(" "),
);

const OBEYED_PREFIXES =
  /^(LD_|LC_|GLIBC_|MALLOC_|GO_|GRPC_|CONTAINERD_|CONTAINER_|NERDCTL_|CNI_|RUNC_|ROOTLESSKIT_|BYPASS4NETNS|XDG_|DBUS_|SYSTEMD_|LISTEN_|DOCKER_|BUILDKIT_|EXPERIMENTAL_|COMPOSE_|OTEL_|OCICRYPT_|SOFTHSM_|COSIGN_|SIGSTORE_|TUF_|IPFS_|NYDUS_|FSNOTIFY_|XTABLES_|IPTABLES_|IP6TABLES_)/;

/** Assigns each variable to the channel that can carry it. If a name is defined twice, the later definition wins. */
export function splitEnv(env: readonly { readonly name: string; readonly value: string }[]): EnvPassing {
  const lines: string[] = [];
  const inherited: Record<string, string> = {};
  for (const [name, value] of new Map(env.map((it) => [it.name, it.value]))) {
    check(name, value);
    if (fitsInFile(name, value)) lines.push(`${name}=${value}\n`);
    else if (affectsNerdctl(name)) throw refusal(name, "has a value that can't be passed on under this name");
    else inherited[name] = value;
  }
  return { file: lines.join(""), inherited };
}

/**
 * Reports whether a name affects nerdctl or the programs that it starts. nerdctl's own environment must not contain
 * users' values under these names.
 */
export function affectsNerdctl(name: string): boolean {
  const upper = name.toUpperCase();
  return OBEYED_NAMES.has(upper) || OBEYED_PREFIXES.test(upper);
}

// nerdctl trims white space, also Unicode's, from each line and drops lines that look like comments.
function fitsInFile(name: string, value: string): boolean {
  const line = `${name}=${value}`;
  if (/[\n\r]/.test(line) || /^[#\s\u0085]/.test(name) || /[\s\u0085]$/.test(value)) return false;
  return Buffer.byteLength(line) <= FILE_LINE_MAX_BYTES;
}

function check(name: string, value: string): void {
  if (name === "" || /[=\0]/.test(name)) throw refusal(name, "is not a name for an environment variable");
  if (value.includes("\0")) throw refusal(name, "has a value with a zero byte");
  if (Buffer.byteLength(`${name}=${value}`) > VARIABLE_MAX_BYTES)
    throw refusal(name, "is longer than Linux allows (128 KiB)");
}

// The message never contains the value, which may be a secret.
function refusal(name: string, what: string): RuntimeError {
  return new RuntimeError("START_FAILED", `environment variable ${JSON.stringify(name)} ${what}`, {
    retryable: false,
  });
}
