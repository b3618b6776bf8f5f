/**
 * A web server that answers with its version. It is ready when it answers, and continues to serve for a while after
 * SIGTERM.
 */
export interface RollManifest {
  readonly name: string;
  readonly image: string;
  readonly version: string;
  readonly replicas: number;
  /** A script that runs instead of the server. */
  readonly script?: string;
  readonly updateStrategy?: object;
  readonly hostNetwork?: boolean;
  readonly port?: number;
  /** The time for which it continues to serve after SIGTERM. */
  readonly drainSeconds?: number;
}

/** This is longer than the delay of any client that follows the endpoints. */
const DEFAULT_DRAIN_SECONDS = 4;

/** Returns the service and its workload, in namespace `e2e` with the label `app: NAME`. */
export function rollManifest(options: RollManifest): string {
  const { name, image, version, replicas, hostNetwork = false, port = 8080 } = options;
  const { drainSeconds = DEFAULT_DRAIN_SECONDS, updateStrategy } = options;
  // As process 1 a shell handles SIGTERM only with a trap.
  const server = `echo "$VERSION" > /tmp/index.html; httpd -f -p ${port} -h /tmp & trap "kill $!; exit" TERM; wait`;
  const container = {
    name: "main",
    image,
    command: ["sh", "-c", options.script ?? server],
    env: [{ name: "VERSION", value: version }],
    ports: [{ name: "http", containerPort: port }],
    readinessProbe: { httpGet: { path: "/", port }, periodSeconds: 1 },
    lifecycle: { preStop: { exec: { command: ["sleep", String(drainSeconds)] } } },
    resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { memory: "64Mi" } },
  };
  const podConfig = { terminationGracePeriodSeconds: 2 + 3 * drainSeconds, hostNetwork };
  const containerService = {
    scaling: { replicas },
    podConfig,
    container,
    ...(updateStrategy && { updateStrategy }),
  };
  const service = { target: name, ports: [{ name: "http", port: 80, targetPort: port }] };
  return JSON.stringify({
    namespace: "e2e",
    labels: { app: name },
    resources: [
      { name, containerService },
      { name, service },
    ],
  });
}
