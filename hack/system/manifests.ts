/** Manifests of the whole-system tests. They are JSON, which is also YAML. */

export interface WebOptions {
  readonly name?: string;
  readonly image: string;
  readonly replicas?: number;
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cpu?: string;
}

const SERVE = "echo serving $GREETING; echo $GREETING > /tmp/index.html && exec httpd -f -p 8080 -h /tmp";

/** Returns a web server and its service, in namespace `e2e` with the label `app: NAME`. */
export function webManifest(options: WebOptions): string {
  const {
    name = "web",
    image,
    replicas = 2,
    command = ["sh", "-c", SERVE],
    env = { GREETING: "hello" },
    cpu = "10m",
  } = options;
  return JSON.stringify({
    namespace: "e2e",
    labels: { app: name },
    resources: [
      {
        name,
        containerService: {
          scaling: { replicas },
          // As process 1 the server ignores SIGTERM, so it is killed after the grace period.
          podConfig: { terminationGracePeriodSeconds: 1 },
          container: {
            name: "main",
            image,
            command,
            env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
            ports: [{ name: "http", containerPort: 8080 }],
            resources: { requests: { cpu, memory: "16Mi" }, limits: { memory: "64Mi" } },
          },
        },
      },
      { name, service: { target: name, ports: [{ name: "http", port: 80, targetPort: 8080 }] } },
    ],
  });
}
