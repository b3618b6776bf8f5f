/** Parts of manifests for the fleet's tests. They are JSON, which is also YAML. */

const HOSTNAME = "kubernetes.io/hostname";
/** A time longer than the last host needs to receive that a pod is stopping. */
const DRAIN_SECONDS = 5;
/** This is long enough that a busy machine makes no pod unready. */
const TIMEOUT_SECONDS = 30;

/** The UDP port of `udpPods`. Nothing listens on it until the test does. */
export const UDP_PORT = 9_000;

export function service(name: string, fields: object): object {
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  return { name, service: { target: name, ports, ...fields } };
}

/**
 * Returns a web server that answers on port 8080 with its version and name, spread evenly over the nodes. It continues
 * to serve for a while after SIGTERM.
 */
export function web(version: string, replicas: number, name = "web"): object {
  const server =
    'mkdir -p /tmp/www; echo "$VERSION $POD" > /tmp/www/index.html; httpd -f -p 8080 -h /tmp/www &';
  return workload(name, replicas, {
    podConfig: { terminationGracePeriodSeconds: 3 * DRAIN_SECONDS, ...spread(name) },
    container: {
      // As process 1 a shell handles SIGTERM only with a trap.
      command: ["sh", "-c", `${server} trap "kill $!; exit" TERM; wait`],
      env: [
        { name: "VERSION", value: version },
        { name: "POD", fieldRef: "metadata.name" },
      ],
      ports: [{ name: "http", containerPort: 8080 }],
      readinessProbe: {
        httpGet: { path: "/", port: 8080 },
        periodSeconds: 1,
        timeoutSeconds: TIMEOUT_SECONDS,
      },
      lifecycle: { preStop: { exec: { command: ["sleep", String(DRAIN_SECONDS)] } } },
    },
  });
}

/** Returns a workload that does nothing, for requests from its pods. */
export function idle(name: string, podConfig: object): object {
  return workload(name, 1, {
    podConfig: { terminationGracePeriodSeconds: 1, ...podConfig },
    container: { command: ["sleep", "100000"] },
  });
}

/** The file whose presence makes a pod of `udpPods` ready. */
export const READY_FILE = "/tmp/www/ready";

/** Returns a workload that is ready while `READY_FILE` exists, and in which nothing listens on `UDP_PORT` yet. */
export function udpPods(name: string, replicas: number): object {
  // A command in a container takes many times the processor time of a request.
  const probe = {
    httpGet: { path: "/ready", port: 8080 },
    periodSeconds: 1,
    timeoutSeconds: TIMEOUT_SECONDS,
  };
  return workload(name, replicas, {
    podConfig: { terminationGracePeriodSeconds: 1, ...spread(name) },
    container: {
      command: ["sh", "-c", `mkdir /tmp/www; touch ${READY_FILE}; exec httpd -f -p 8080 -h /tmp/www`],
      ports: [{ name: "udp", containerPort: UDP_PORT, protocol: "UDP" }],
      readinessProbe: { ...probe, failureThreshold: 1 },
    },
  });
}

export function onlyOn(node: string): object {
  return { nodeSelector: { [HOSTNAME]: node } };
}

export function spread(app: string): object {
  const constraint = {
    maxSkew: 1,
    topologyKey: HOSTNAME,
    whenUnsatisfiable: "DoNotSchedule",
    labelSelector: { matchLabels: { app } },
  };
  return { labels: { app }, topologySpreadConstraints: [constraint] };
}

function workload(
  name: string,
  replicas: number,
  { podConfig, container }: { readonly podConfig: object; readonly container: object },
): object {
  const resources = { requests: { cpu: "10m", memory: "16Mi" } };
  const main = { name: "main", image: "localhost/forage/busybox:1", resources, ...container };
  return { name, containerService: { scaling: { replicas }, podConfig, container: main } };
}
