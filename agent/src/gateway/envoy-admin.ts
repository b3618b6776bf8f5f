import { request } from "node:http";

/** The parts of Envoy's configuration that come from separate files. */
export type Subscription = "listeners" | "clusters" | "http" | "https";

export interface SubscriptionState {
  /** The version of the applied file. Empty if there is none, or while Envoy is still preparing it. */
  readonly version: string;
  /** The number of contents that Envoy has rejected since it started. */
  readonly rejected: number;
}

/** The part of Envoy's administration interface that the agent uses. Rejects if Envoy doesn't respond. */
export interface EnvoyAdmin {
  /** Reports whether Envoy accepts requests because it has loaded its initial configuration. */
  live(): Promise<boolean>;
  /** Returns Envoy's version, such as "1.40.0". */
  version(): Promise<string>;
  /** Returns Envoy's subscriptions; routes only once it has a listener for them. */
  subscriptions(): Promise<ReadonlyMap<Subscription, SubscriptionState>>;
  /** Returns the names of bound listeners. */
  listeners(): Promise<ReadonlySet<string>>;
  /** Returns the proxy's metrics in Prometheus' text format. */
  metrics(): Promise<string>;
  /**
   * Returns the number of requests answered since the proxy started, and how many of these had a status of 500 or more.
   */
  traffic(): Promise<{ readonly requests: number; readonly errors: number }>;
  /** Returns the number of open client connections. */
  connections(): Promise<number>;
  reopenLogs(): Promise<void>;
  /** Fails Envoy's health check, and closes each connection after its current request. */
  drain(): Promise<void>;
  quit(): Promise<void>;
}

const TIMEOUT_MS = 5_000;
const METRICS_TIMEOUT_MS = 20_000;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const STATS: Readonly<Record<string, Subscription>> = {
  "listener_manager.lds": "listeners",
  "cluster_manager.cds": "clusters",
  "http.http.rds.http": "http",
  "http.https.rds.https": "https",
};
const FILTER =
  "^(listener_manager\\.(lds|total_listeners_warming)|cluster_manager\\.(cds|warming_clusters)|http\\.https?\\.rds\\.https?)(\\.version_text|\\.update_rejected)?$";
/** The statistics of both ports. Health checks of load balancers are included. */
const ANSWERED = "^http\\.https?\\.downstream_rq_(completed|5xx)$";
/**
 * Subscriptions by the statistic that shows that Envoy still waits for certificates or endpoints. Until then requests
 * use the previous configuration.
 */
const WARMING: Readonly<Record<string, Subscription>> = {
  "listener_manager.total_listeners_warming": "listeners",
  "cluster_manager.warming_clusters": "clusters",
};

/** Calls Envoy's administration interface on the Unix socket at `socketPath`. */
export class EnvoyAdminSocket implements EnvoyAdmin {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  async live(): Promise<boolean> {
    return (await this.#ask("GET", "/ready")).status === 200;
  }

  async version(): Promise<string> {
    const info = JSON.parse(await this.#text("GET", "/server_info")) as { readonly version?: string };
    // The fields are commit, version, state of the sources, kind of build and TLS library.
    return info.version?.split("/")[1] ?? "";
  }

  async subscriptions(): Promise<ReadonlyMap<Subscription, SubscriptionState>> {
    const text = await this.#text("GET", `/stats?type=All&filter=${encodeURIComponent(FILTER)}`);
    const found = new Map<Subscription, SubscriptionState>();
    const warming = new Set<Subscription>();
    for (const line of text.split("\n")) {
      const [gauge = "", count] = line.split(": ");
      const prepared = WARMING[gauge];
      if (prepared !== undefined && count !== "0") warming.add(prepared);
      const match = /^(.+)\.(version_text|update_rejected): "?(.*?)"?$/.exec(line);
      const name = STATS[match?.[1] ?? ""];
      if (match === null || name === undefined) continue;
      const known = found.get(name) ?? { version: "", rejected: 0 };
      const value = match[3] ?? "";
      found.set(
        name,
        match[2] === "version_text" ? { ...known, version: value } : { ...known, rejected: Number(value) },
      );
    }
    for (const name of warming) {
      const state = found.get(name);
      if (state !== undefined) found.set(name, { ...state, version: "" });
    }
    return found;
  }

  async listeners(): Promise<ReadonlySet<string>> {
    const text = await this.#text("GET", "/listeners");
    return new Set(text.split("\n").flatMap((line) => (line === "" ? [] : (line.split("::")[0] ?? []))));
  }

  metrics(): Promise<string> {
    return this.#text("GET", "/stats/prometheus?usedonly", METRICS_TIMEOUT_MS);
  }

  async connections(): Promise<number> {
    const text = await this.#text("GET", "/stats?filter=^listener\\..*\\.downstream_cx_active$");
    const counts = text
      .split("\n")
      .filter((line) => !line.startsWith("listener.admin."))
      .map((line) => Number(line.split(": ")[1] ?? 0));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async traffic(): Promise<{ readonly requests: number; readonly errors: number }> {
    const text = await this.#text("GET", `/stats?filter=${encodeURIComponent(ANSWERED)}`);
    const sums = { requests: 0, errors: 0 };
    for (const line of text.split("\n")) {
      const [name = "", count = "0"] = line.split(": ");
      if (name.endsWith(".downstream_rq_completed")) sums.requests += Number(count);
      if (name.endsWith(".downstream_rq_5xx")) sums.errors += Number(count);
    }
    return sums;
  }

  async reopenLogs(): Promise<void> {
    await this.#text("POST", "/reopen_logs");
  }

  async drain(): Promise<void> {
    await this.#text("POST", "/healthcheck/fail");
    await this.#text("POST", "/drain_listeners?graceful&skip_exit");
  }

  async quit(): Promise<void> {
    await this.#text("POST", "/quitquitquit");
  }

  async #text(method: string, path: string, timeoutMs?: number): Promise<string> {
    const { status, text } = await this.#ask(method, path, timeoutMs);
    if (status === 200) return text;
    throw new Error(`Envoy responded to ${method} ${path} with status ${status}: ${text.slice(0, 200)}`);
  }

  #ask(
    method: string,
    path: string,
    timeoutMs = TIMEOUT_MS,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const options = {
      ...{ socketPath: this.#socketPath, method, path, agent: false },
      headers: { host: "envoy" },
      signal: AbortSignal.timeout(timeoutMs),
    };
    return new Promise((resolve, reject) => {
      const asking = request(options, (answer) => {
        const parts: Buffer[] = [];
        let bytes = 0;
        answer.on("data", (part: Buffer) => {
          bytes += part.length;
          if (bytes > ANSWER_BYTES_MAX) asking.destroy(new Error("Envoy's response is too long"));
          parts.push(part);
        });
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
        );
        answer.on("error", reject);
      });
      asking.on("error", reject);
      asking.end();
    });
  }
}
