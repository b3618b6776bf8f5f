import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CliError } from "../errors.ts";
import { type BundleOptions, readBundles, readManifest } from "./bundles.ts";
import { locate, splitPath } from "./locate.ts";
import { formatProblem } from "./problem.ts";

const options = { namespace: "default", flagNamespace: undefined };

/** Returns namespace, labels and `kind name` of each resource for each bundle. */
function shapes(texts: readonly string[], given: Partial<BundleOptions> = {}): unknown {
  const sources = texts.map((text, index) => ({ name: `f${index}`, text }));
  return readManifest(sources, { ...options, ...given }).bundles.map(
    ({ request: { namespace, labels, resources, applyId } }) => [
      namespace,
      Object.entries(labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(","),
      resources.map(({ name, spec }) => `${spec?.$case} ${name}`).join(", "),
      ...(applyId === "" ? [] : [applyId]),
    ],
  );
}

function problems(texts: readonly string[], given: Partial<BundleOptions> = {}): string[] {
  try {
    shapes(texts, given);
  } catch (error) {
    assert.ok(error instanceof CliError && error.code === "MANIFEST", String(error));
    return error.message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
  return [];
}

const service = (name: string) => `name: ${name}\nservice: {target: t}\n`;

describe("documents that form a bundle", () => {
  test("reads a document with resources as a bundle", () => {
    const text =
      "namespace: shop\nlabels: {app: web}\nresources:\n- {name: a, service: {}}\n- {name: b, route: {}}\n";
    assert.deepEqual(shapes([text]), [["shop", "app=web", "service a, route b"]]);
  });

  test("reads a single resource into the default namespace without labels", () => {
    assert.deepEqual(shapes([service("a")]), [["default", "", "service a"]]);
  });

  test("applies namespace and labels of a header to the single resources that follow it in its file", () => {
    const header = "namespace: shop\nlabels: {app: web}\napply_id: x\n";
    assert.deepEqual(shapes([[header, service("a"), service("b")].join("---\n"), service("c")]), [
      ["shop", "app=web", "service a, service b", "x"],
      ["default", "", "service c"],
    ]);
  });

  test("adds a resource after a bundle to that bundle", () => {
    const bundle = "namespace: shop\nresources: [{name: a, service: {}}]\n";
    assert.deepEqual(shapes([[bundle, service("b")].join("---\n")]), [["shop", "", "service a, service b"]]);
  });

  test("joins resources of the same namespace and labels in several files into one bundle, in order", () => {
    const one = (name: string, labels: string) =>
      `namespace: shop\nlabels: ${labels}\nresources: [{name: ${name}, service: {}}]\n`;
    assert.deepEqual(shapes([one("a", "{x: 1a, y: 2b}"), one("b", "{x: 1a}"), one("c", "{y: 2b, x: 1a}")]), [
      ["shop", "x=1a,y=2b", "service a, service c"],
      ["shop", "x=1a", "service b"],
    ]);
  });

  test("prefers the manifest's namespace to the default, and requires that -n agrees", () => {
    const text = "namespace: shop\nresources: [{name: a, service: {}}]\n";
    assert.deepEqual(shapes([text], { namespace: "other" }), [["shop", "", "service a"]]);
    assert.deepEqual(shapes([text], { namespace: "shop", flagNamespace: "shop" }), [
      ["shop", "", "service a"],
    ]);
    assert.deepEqual(problems([text], { namespace: "other", flagNamespace: "other" }), [
      'f0:1:12: namespace: "shop" contradicts -n other',
    ]);
    assert.deepEqual(shapes([service("a")], { namespace: "other", flagNamespace: "other" }), [
      ["other", "", "service a"],
    ]);
  });

  test("joins resources in the default namespace with those that name it", () => {
    assert.deepEqual(shapes([service("a"), "namespace: default\nresources: [{name: b, service: {}}]"]), [
      ["default", "", "service a, service b"],
    ]);
  });

  test("accepts JSON, camelCase and empty documents", () => {
    const json = JSON.stringify({
      namespace: "shop",
      applyId: "7",
      resources: [{ name: "a", cronJob: { schedule: "* * * * *" } }],
    });
    assert.deepEqual(shapes([json, `---\n# nothing\n---\n${service("b")}`]), [
      ["shop", "", "cronJob a", "7"],
      ["default", "", "service b"],
    ]);
  });

  test("accepts an apply id in any one document of a bundle", () => {
    const text = `${service("a")}---\napply_id: x\nresources: [{name: b, service: {}}]\n`;
    assert.deepEqual(shapes([text]), [["default", "", "service a, service b", "x"]]);
  });
});

describe("refused documents", () => {
  const cases: [title: string, texts: string[], expected: string[]][] = [
    ["nothing at all", ["# empty\n"], ["f0:1:1: holds no resources"]],
    [
      "a header that nothing follows",
      ["labels: {a: b}\n"],
      ["f0:1:1: the document has no resources, and no document with resources follows it"],
    ],
    [
      "a header that the next one replaces",
      ["labels: {a: b}\n---\nlabels: {c: d}\n---\nname: x\nservice: {}\n"],
      ["f0:1:1: the document has no resources, and no document with resources follows it"],
    ],
    [
      "an empty list, which would remove everything with its labels",
      ["labels: {a: b}\nresources: []\n"],
      [
        "f0:2:12: resources: is empty; to remove everything with certain labels use `forage delete -l key=value`",
      ],
    ],
    ["no name", ["service: {}\n"], ["f0:1:1: name: is missing"]],
    [
      "no spec",
      ["resources:\n- name: a\n"],
      ["f0:2:3: resources[0]: has no spec: one of container_service, service, route, cron_job, job"],
    ],
    [
      "two specs",
      ["name: a\nservice: {}\njob: {}\n"],
      ["f0:3:1: job: can't stand beside service: only one of them may be given"],
    ],
    [
      "different apply ids in one bundle",
      [
        "apply_id: x\nresources: [{name: a, service: {}}]\n---\napplyId: y\nresources: [{name: b, service: {}}]\n",
      ],
      ['f0:4:10: apply_id: differs from "x", which the same bundle has elsewhere'],
    ],
    [
      "all files are checked",
      ["nmae: a\nservice: {}\n", "resources: x\n"],
      ['f0:1:1: nmae: unknown field "nmae" (did you mean "name"?)', "f1:1:12: resources: must be a list"],
    ],
  ];
  for (const [title, texts, expected] of cases)
    test(title, () => assert.deepEqual(problems(texts), expected));

  test("shows the first of very many problems, and the number of the others", () => {
    const text = Array.from({ length: 30 }, (_, i) => `unknown_${i}_field: 1`).join("\n");
    const shown = problems([`name: a\nservice: {}\n${text}`]);
    assert.equal(shown.length, 21);
    assert.equal(shown.at(-1), "and 10 more");
  });
});

describe("locates a violation of the coordinator in the manifest", () => {
  const text = `namespace: shop
labels:
  app.example/x: "1"
resources:
  - name: web
    containerService:
      container:
        image: "a b"
        ports:
          - containerPort: 80
---
name: other
service:
  target: web
  ports: &ports
    - port: 80
`;
  const [bundle] = readBundles([{ name: "f", text }], options);
  assert.ok(bundle);
  const cases: Record<string, string | undefined> = {
    "resources[0].container_service.container.image":
      "f:8:16: resources[0].container_service.container.image: bad",
    "resources[0].containerService.container.image":
      "f:8:16: resources[0].containerService.container.image: bad",
    "resources[0].container_service.container.ports[0].container_port":
      "f:10:28: resources[0].container_service.container.ports[0].container_port: bad",
    "resources[0].container_service.container.name":
      "f:7:7: resources[0].container_service.container.name: bad",
    "resources[1].service.ports[0].port": "f:16:13: service.ports[0].port: bad",
    "resources[1].name": "f:12:7: name: bad",
    'labels["app.example/x"]': 'f:3:18: labels["app.example/x"]: bad',
    namespace: "f:1:12: namespace: bad",
    apply_id: "f:1:1: apply_id: bad",
    resources: "f:4:1: resources: bad",
    "resources[7].name": undefined,
  };
  for (const [path, expected] of Object.entries(cases)) {
    test(path, () => {
      const problem = locate(bundle, { field: path, description: "bad" });
      assert.equal(problem === undefined ? undefined : formatProblem(problem), expected);
    });
  }

  test("splits paths into steps", () => {
    assert.deepEqual(splitPath('a_b[0].c["d.e"].f[g/h]["q\\"r"]'), ["a_b", 0, "c", "d.e", "f", "g/h", 'q"r']);
  });
});

for (const [what, text] of [
  ["lists in one line", `a: ${"[".repeat(20_000)}${"]".repeat(20_000)}`],
  ["maps over lines", Array.from({ length: 3_000 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")],
] as const) {
  test(`refuses a manifest that is nested too deeply in one clear line: ${what}`, () => {
    const [problem, ...others] = problems([text]);
    assert.match(problem ?? "", /^f0:\d+:\d+: .*nested too deeply/);
    assert.deepEqual(others, []);
  });
}

describe("Compose files", () => {
  const env = {};
  const invalid = "services: {web: {image: 'web:v1', ports: [abc]}}\n";
  const partial = "services: {web: {image: 'web:v1', networks: [back]}}\n";

  test("reports what is wrong in the file", () => {
    for (const onLoss of [undefined, () => {}]) {
      const [problem, ...others] = problems([invalid], { conversion: { env, onLoss } });
      assert.match(problem ?? "", /services\.web\.ports/);
      assert.deepEqual(others, []);
    }
  });

  test("reports what can't be converted as a problem, or to the function for losses", () => {
    const [problem] = problems([partial], { conversion: { env, onLoss: undefined } });
    assert.match(problem ?? "", /services\.web\.networks/);
    const losses: string[] = [];
    const onLoss = ({ path }: { readonly path: string }): void => void losses.push(path);
    assert.deepEqual(problems([partial], { conversion: { env, onLoss } }), []);
    assert.deepEqual(losses, ["services.web.networks"]);
  });
});
