import { request } from "node:http";
import { webManifest } from "./manifests.ts";

export const SERVE =
  "echo line one; echo the second line; echo '<h1>beans</h1>' > /tmp/index.html; exec httpd -f -p 8080 -h /tmp";
/** The hostname of the route, for which the development authority makes a certificate. */
export const HOSTNAME = "shop.example.com";

/** Returns manifests of everything that pages of the dashboard show, in namespace `e2e`, each with a different name. */
export function worldManifests(image: string): readonly string[] {
  return [cronJob(image), route(), autoscaled(image)];
}

/** Returns a workload of two pods that answer on port 8080. */
export function web(image: string, fields: { readonly replicas?: number; readonly greeting?: string } = {}) {
  const { replicas = 2, greeting = "hello" } = fields;
  return webManifest({ image, replicas, command: ["sh", "-c", SERVE], env: { GREETING: greeting } });
}

/** Returns a cron job that is never due during a test. */
function cronJob(image: string): string {
  const container = { name: "main", image, command: ["sh", "-c", "echo counted"] };
  return bundle("tick", { cronJob: { schedule: "0 3 1 1 *", container } });
}

function route(): string {
  return bundle("shop", { route: { targetService: "web", hostnames: [HOSTNAME], tls: {} } });
}

function autoscaled(image: string): string {
  const customMetrics = [{ name: "orders", targetType: "AverageValue", targetValue: "10" }];
  const container = {
    // A name other than "main" shows that lists of containers use the name.
    name: "worker",
    image,
    command: ["sh", "-c", 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'],
    resources: { requests: { cpu: "10m", memory: "16Mi" } },
  };
  const scaling = { replicas: 1, autoscaling: { maxReplicas: 2, customMetrics } };
  const podConfig = { terminationGracePeriodSeconds: 1 };
  return bundle("scaled", { containerService: { scaling, podConfig, container } });
}

function bundle(name: string, spec: object): string {
  return JSON.stringify({ namespace: "e2e", labels: { app: name }, resources: [{ name, ...spec }] });
}

/** Requests the hostname of the route from the gateway, which redirects clients to its TLS port. */
export function askGateway(port: number): Promise<void> {
  return new Promise((resolve) => {
    const asking = request({ host: "127.0.0.1", port, agent: false, headers: { host: HOSTNAME } });
    asking.on("response", (answer) => answer.resume().on("end", resolve));
    asking.on("error", () => resolve());
    asking.end();
  });
}
