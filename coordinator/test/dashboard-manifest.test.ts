import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../dashboard/data/api-error.ts";
import { holdsSecrets } from "../dashboard/manifest/holds-secrets.ts";
import {
  keepManifest,
  MAX_KEPT_LENGTH,
  type TabStorage,
  takeManifest,
} from "../dashboard/manifest/kept-manifest.ts";
import { planManifest } from "../dashboard/manifest/plan-manifest.ts";
import { readManifest } from "../dashboard/manifest/read-manifest.ts";

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      hostIPC: true
      priorityClassName: high
      containers: [{ name: web, image: nginx:1, ports: [{ containerPort: 80 }] }]
`;
const SERVICE = `apiVersion: v1
kind: Service
metadata: { name: front, namespace: shop }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
`;
const COMPOSE = `name: blog
services:
  web:
    image: nginx:\${TAG:-1}
    ports: ["8080:80"]
`;
const CLASS = `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: { name: high }
value: 7
`;
const SECRET = `apiVersion: v1
kind: Secret
metadata: { name: db, namespace: shop }
stringData: { password: beans }
`;

const STRICT = { namespace: "own", isLossy: false };
const LOSSY = { namespace: "own", isLossy: true };

function faultOf(text: string, options = STRICT): ApiError {
  try {
    readManifest(text, options);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new assert.AssertionError({ message: "the manifest was read" });
}

const linesOf = ({ violations }: ApiError) =>
  violations.map(({ field, description }) => `${field} ${description}`);

test("converts Kubernetes manifests and Compose files like forage convert", () => {
  const kubernetes = readManifest(
    `${DEPLOYMENT}---\n${SERVICE}`.replace("      hostIPC: true\n", ""),
    STRICT,
  );
  assert.deepEqual(
    kubernetes.bundles.map(({ namespace, content }) => [namespace, Object.keys(content), content.resources]),
    [
      [
        "shop",
        ["namespace", "resources"],
        [
          {
            name: "web",
            container_service: {
              scaling: { replicas: 2 },
              pod_config: { labels: { app: "web" }, priority_class_name: "high" },
              container: { name: "web", image: "nginx:1", ports: [{ container_port: 80 }] },
            },
          },
          { name: "front", service: { target: "web", ports: [{ port: 80 }] } },
        ],
      ],
    ],
  );
  const compose = readManifest(COMPOSE, STRICT);
  assert.deepEqual(
    [compose.bundles[0]?.namespace, compose.bundles[0]?.content.labels],
    ["own", { app: "blog" }],
  );
  assert.match(
    compose.converted ?? "",
    /^namespace: own\nlabels:\n {2}app: blog\nresources:\n {2}- name: web\n/,
  );
  assert.match(compose.converted ?? "", /image: nginx:1\n/);
});

test("reports a part that can't be converted with its line and field, or omits it on request", () => {
  const fault = faultOf(DEPLOYMENT);
  assert.match(fault.message, /can't be carried over/);
  assert.deepEqual(
    fault.violations.map(({ field }) => field),
    ["line 10, column 16: spec.template.spec.hostIPC"],
  );
  const { losses, bundles } = readManifest(DEPLOYMENT, LOSSY);
  assert.deepEqual([losses.map(({ path }) => path), bundles.length], [["spec.template.spec.hostIPC"], 1]);
  const wrong = faultOf(DEPLOYMENT.replace("replicas: 2", "replicsa: 2"), LOSSY);
  assert.deepEqual(linesOf(wrong), [
    'line 5, column 13: spec.replicsa is an unknown field (did you mean "replicas"?)',
  ]);
  assert.deepEqual(linesOf(faultOf(COMPOSE.replace(":-1", ""))), [
    "line 4, column 12: services.web.image needs the variable TAG, which is not set here",
  ]);
});

test("plans Forage's own documents of one namespace and labels together", () => {
  const { bundles, converted } = readManifest(
    `namespace: shop
labels: { app: a }
---
name: web
containerService: { scaling: {}, container: { name: web, image: i } }
---
namespace: shop
labels: { app: a }
resources: [{ name: front, service: { target: web } }]
`,
    STRICT,
  );
  assert.deepEqual(
    bundles.map(({ content }) => content),
    [
      {
        namespace: "shop",
        labels: { app: "a" },
        resources: [
          { name: "web", containerService: { container: { name: "web", image: "i" } } },
          { name: "front", service: { target: "web" } },
        ],
      },
    ],
  );
  assert.equal(converted, undefined);
  for (const [text, line] of [
    [
      "namespace: shop\n",
      "line 1, column 1 the document has no resources, and no document with resources follows it",
    ],
    ["namespace: 7\nresources: []\n", "line 1, column 12: namespace must be text"],
    ["resources: {}\n", "line 1, column 12: resources must be a list"],
    ["- a\n", "line 1, column 1 a manifest is a mapping with namespace, labels and resources"],
    [
      "a: [\n",
      "line 2, column 1 Flow sequence in block collection must be sufficiently indented and end with a ]",
    ],
  ] as const)
    assert.deepEqual(linesOf(faultOf(text)), [line]);
  assert.equal(faultOf("").message, "the manifest is empty");
});

test("plans objects before resources, and uses a priority class only once it exists", async () => {
  const requests: [string, object][] = [];
  const planned = await planManifest([DEPLOYMENT, CLASS, SECRET].join("---\n"), {
    ...LOSSY,
    call: async (method, request) => {
      requests.push([method, request]);
      if ("object" in request && "secret" in (request.object as object))
        throw new ApiError("PERMISSION_DENIED", "it takes an editor");
      return (method === "plan" ? { changes: true } : { action: "create", changes: [] }) as never;
    },
  });
  assert.deepEqual(requests.slice(0, 2), [
    [
      "planObject",
      { namespace: "", object: { labels: {}, priorityClass: { value: 7 }, namespace: "", name: "high" } },
    ],
    [
      "planObject",
      {
        namespace: "shop",
        object: { labels: {}, secret: { data: { password: "YmVhbnM=" } }, namespace: "shop", name: "db" },
      },
    ],
  ]);
  assert.equal(JSON.stringify(requests[2]).includes("priority"), false);
  assert.deepEqual(
    planned.objects.map(({ plan }) => [plan.name, plan.action, plan.notes]),
    [
      ["high", "create", undefined],
      ["db", "not planned", ["it takes an editor"]],
    ],
  );
  assert.match(planned.notes.join(), /"high" does not exist yet/);
  assert.match(planned.converted ?? "", /priority_class_name: high/);
  assert.equal(
    JSON.stringify(planned).includes("YmVhbnM="),
    false,
    "values of secrets are in no part of the page",
  );
  assert.deepEqual(
    planned.losses.map((line) => line.split(": ")[0]),
    ["line 10, column 16"],
  );
});

test("shows a field that the coordinator refuses at its position in the text", async () => {
  const refused = (field: string, text: string) =>
    planManifest(text, {
      ...STRICT,
      call: () => Promise.reject(new ApiError("INVALID_ARGUMENT", "no", [{ field, description: "is bad" }])),
    }).then(
      () => assert.fail("it was planned"),
      (error: ApiError) => linesOf(error),
    );
  const own = "namespace: shop\nresources:\n  - name: web\n    service: { target: 7 }\n";
  assert.deepEqual(await refused("resources[0].service.target", own), [
    "line 4, column 24: resources[0].service.target is bad",
  ]);
  assert.deepEqual(await refused("resources[0].container_service.container.image", COMPOSE), [
    "line 4, column 5: services.web container_service.container.image: is bad",
  ]);
  assert.deepEqual(await refused("elsewhere", SECRET), ["line 1, column 1: Secret/db elsewhere: is bad"]);
});

test("does not keep a manifest across a log-in that may contain values of secrets", () => {
  for (const text of [
    SECRET,
    `apiVersion: v1\nkind: List\nitems: [{ kind: Secret, data: { a: YQ== } }]`,
    "services: { web: { environment: [DB_PASSWORD=beans] } }",
    "services: { web: { environment: { DB_PASSWORD: 7 } } }",
    "services: {}\nsecrets: { db: { content: beans } }",
    "spec: { env: [{ name: API_TOKEN, value: a }] }",
    "url: postgres://app:beans@db/shop",
    "config: |\n  user = app\n  password = beans\n",
    "name: web # password: beans",
    "a: [",
  ])
    assert.equal(holdsSecrets(text), true, text);
  for (const text of [
    DEPLOYMENT,
    COMPOSE,
    "automountServiceAccountToken: false\nimagePullSecrets: [{ name: registry }]",
    "env: [{ name: DB_PASSWORD, valueFrom: { secretKeyRef: { name: db, key: password } } }]",
    "volumes: [{ name: tls-secret, secret: { secretName: tls } }]",
    "services: { web: { secrets: [db] } }\nsecrets: { db: { external: true } }",
  ])
    assert.equal(holdsSecrets(text), false, text);
});

test("returns a kept manifest once, limits its length, and reports why it was not kept", () => {
  const kept = new Map<string, string>();
  const storage: TabStorage = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => {
      if (value.includes("no room")) throw new Error("QuotaExceededError");
      kept.set(key, value);
    },
    removeItem: (key) => void kept.delete(key),
  };
  const after = (text: string) => {
    keepManifest(storage, text, holdsSecrets);
    return takeManifest(storage);
  };
  assert.deepEqual(after(COMPOSE), { type: "kept", text: COMPOSE });
  assert.equal(takeManifest(storage), undefined);
  assert.equal(after(" \n"), undefined);
  assert.deepEqual(after(SECRET), { type: "secrets" });
  assert.deepEqual(after("a".repeat(MAX_KEPT_LENGTH + 1)), { type: "too-long" });
  assert.deepEqual(after("name: no room"), { type: "no-room" });
});
