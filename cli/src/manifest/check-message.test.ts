import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { forestSchema } from "@forage/proto/forest-schema";
import type { JsonObject, Schema } from "@forage/proto/json-message";
import { MessageChecker } from "./check-message.ts";
import { parseSource } from "./document.ts";
import { formatProblem } from "./problem.ts";

/** A schema with every kind of field, because no manifest of the contract has bytes or an enum. */
const every: Schema = {
  "t.All": {
    name: "t.All",
    fields: [
      field("text", "scalar", "string"),
      field("small", "scalar", "uint32"),
      field("big", "scalar", "int64"),
      field("real", "scalar", "double"),
      field("flag", "scalar", "bool"),
      field("raw", "scalar", "bytes"),
      field("after", "duration", "google.protobuf.Duration"),
      { ...field("mode", "enum", "t.Mode"), values: ["MODE_UNSPECIFIED", "MODE_FAST"] },
      field("inner_message", "message", "t.All"),
      { ...field("many", "scalar", "int32"), repeated: true },
      { ...field("labels", "scalar", "string"), map: true },
      { ...field("by_name", "message", "t.All"), map: true },
      { ...field("left", "scalar", "string"), oneof: "side" },
      { ...field("right", "scalar", "string"), oneof: "side" },
    ],
  },
};

function field(name: string, kind: "scalar" | "enum" | "message" | "duration", type: string) {
  const jsonName = name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return { name, jsonName, number: 1, kind, type, repeated: false, map: false, oneof: undefined, values: [] };
}

function check(
  text: string,
  schema = every,
  type = "t.All",
): { object: JsonObject | undefined; problems: string[] } {
  const { documents, problems } = parseSource({ name: "m", text });
  const [document] = documents;
  if (document === undefined || problems.length > 0) {
    return { object: undefined, problems: problems.map(formatProblem) };
  }
  const checker = new MessageChecker(schema, document);
  const object = checker.check(document.root, type, "");
  return { object, problems: checker.problems.map(formatProblem) };
}

describe("input that proto-JSON allows", () => {
  const cases: Record<string, JsonObject> = {
    'text: "5"': { text: "5" },
    "text: yes": { text: "yes" },
    "small: 4294967295": { small: 4294967295 },
    'small: "7"': { small: 7 },
    "small: 5.0": { small: 5 },
    "small: 1e3": { small: 1000 },
    "small: 0x1f": { small: 31 },
    "big: 9223372036854775807": { big: "9223372036854775807" },
    "big: -9223372036854775808": { big: "-9223372036854775808" },
    'big: "12"': { big: "12" },
    "real: 1.5": { real: 1.5 },
    "real: 2": { real: 2 },
    "flag: true": { flag: true },
    "raw: aGk=": { raw: "aGk" },
    "raw: -_-_": { raw: "+/+/" },
    "after: 1.5s": { after: "1.5s" },
    "mode: MODE_FAST": { mode: "MODE_FAST" },
    "many: [1, -2]": { many: [1, -2] },
    "many: []": { many: [] },
    "inner_message: {text: a}": { innerMessage: { text: "a" } },
    "innerMessage: {text: a}": { innerMessage: { text: "a" } },
    "labels: {a.b/c: d}": { labels: { "a.b/c": "d" } },
    "labels: {1: d}": { labels: { 1: "d" } },
    "byName: {x: {small: 1}}": { byName: { x: { small: 1 } } },
    "text:": {},
    "text: null\nleft: null\nright: a": { right: "a" },
    "text: |\n  two\n  lines\n": { text: "two\nlines\n" },
    "by_name:\n  a: &a {text: x}\n  b: *a": { byName: { a: { text: "x" }, b: { text: "x" } } },
    '{\n\t"text": "a",\n\t"many": [1]\n}': { text: "a", many: [1] },
    "{}": {},
  };
  for (const [text, object] of Object.entries(cases)) {
    test(JSON.stringify(text), () => assert.deepEqual(check(text), { object, problems: [] }));
  }

  test("accepts unusual keys such as names of JavaScript's object members", () => {
    const { object, problems } = check("labels: {__proto__: a, constructor: b}");
    assert.deepEqual(problems, []);
    assert.deepEqual(Object.entries(object?.labels as object), [
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
  });
});

describe("input that proto-JSON refuses", () => {
  const cases: Record<string, readonly string[]> = {
    "text: 5": ['m:1:7: text: must be text; write it in quotes: "5"'],
    "text: true": ['m:1:7: text: must be text; write it in quotes: "true"'],
    "text: [a]": ["m:1:7: text: must be text, not a list"],
    "text: {a: b}": ["m:1:7: text: must be text, not a mapping"],
    "small: -1": ["m:1:8: small: must be from 0 to 4294967295"],
    "small: 4294967296": ["m:1:8: small: must be from 0 to 4294967295"],
    "small: 1.5": ["m:1:8: small: must be a whole number"],
    "small: two": ['m:1:8: small: must be a whole number, not "two"'],
    "small: true": ["m:1:8: small: must be a whole number"],
    "big: 9223372036854775808": ["m:1:6: big: must be from -9223372036854775808 to 9223372036854775807"],
    "real: x": ["m:1:7: real: must be a number"],
    "flag: yes": ['m:1:7: flag: must be true or false, not "yes"'],
    "flag: 1": ["m:1:7: flag: must be true or false"],
    "raw: a": ["m:1:6: raw: must be base64 text"],
    "raw: aGk*": ["m:1:6: raw: must be base64 text"],
    "after: 5": ['m:1:8: after: must be a duration: for seconds write "5s"'],
    "after: 5m": ['m:1:8: after: must be a duration in seconds such as "30s" or "1.5s", not "5m"'],
    "mode: MODE_FSAT": [
      'm:1:7: mode: must be one of MODE_UNSPECIFIED, MODE_FAST, not "MODE_FSAT" (did you mean "MODE_FAST"?)',
    ],
    "mode: 1": ["m:1:7: mode: must be one of MODE_UNSPECIFIED, MODE_FAST"],
    "many: 1": ["m:1:7: many: must be a list"],
    "many: {a: 1}": ["m:1:7: many: must be a list"],
    "many: [1, x, null]": [
      'm:1:11: many[1]: must be a whole number, not "x"',
      "m:1:14: many[2]: must be a whole number",
    ],
    "labels: [a]": ["m:1:9: labels: must be a mapping of names to text"],
    "labels: {a: 1, b: }": [
      'm:1:13: labels[a]: must be text; write it in quotes: "1"',
      "m:1:19: labels[b]: must be text",
    ],
    "inner_message: text": ["m:1:16: inner_message: must be a mapping"],
    "by_name:\n  x:\n    txt: a": ['m:3:5: by_name[x].txt: unknown field "txt" (did you mean "text"?)'],
    "inner_message:\n  innerMesage: {}": [
      'm:2:3: inner_message.innerMesage: unknown field "innerMesage" (did you mean "innerMessage"?)',
    ],
    "inner_message: {}\ninnerMessage: {}": ["m:2:1: innerMessage: is the same field as inner_message"],
    "left: a\nright: b": ["m:2:1: right: can't stand beside left: only one of them may be given"],
    "text: a\ntext: b": ["m:2:1: this key stands here twice"],
    '{"text": "a", "text": "b"}': ["m:1:15: this key stands here twice"],
    "<<: {text: a}": ["m:1:1: <<: merge keys are not supported: write the fields out"],
    "text: *none": ["m:1:7: text: there is no anchor of this name before it"],
    "- a": ["m:1:1: must be a mapping"],
    "constructor: a": [
      'm:1:1: constructor: unknown field "constructor"; there are text, small, big, real, flag, raw, after, mode, inner_message, many, labels, by_name, left, right',
    ],
  };
  for (const [text, problems] of Object.entries(cases)) {
    test(JSON.stringify(text), () => assert.deepEqual(check(text).problems, problems));
  }

  test("reports invalid YAML with its position", () => {
    const [problem = ""] = check("text: [a\nsmall: 1").problems;
    assert.match(problem, /^m:2:1: /);
    assert.match(check("text: !wrong a").problems[0] ?? "", /^m:1:7: .*tag/);
    assert.match(check("a:\n\tb: 1").problems[0] ?? "", /^m:2:1: Tabs/);
  });

  test("reports all problems, not only the first", () => {
    assert.equal(check("text: 1\nsmall: x\nunknown: 1").problems.length, 3);
  });
});

describe("manifests that are made to exhaust memory or time", () => {
  test("refuses an anchor that contains itself", () => {
    const { problems } = check("inner_message: &a\n  inner_message: *a");
    assert.match(problems[0] ?? "", /is nested too deeply|there is no anchor/);
  });

  test("refuses a few lines of aliases that expand to billions of values", () => {
    const levels = Array.from({ length: 12 }, (_, i) => {
      const inner =
        i === 0
          ? "{text: a}"
          : `{by_name: {${[..."abcdefghij"].map((key) => `${key}: *l${i - 1}`).join(", ")}}}`;
      return `  k${i}: &l${i} ${inner}`;
    });
    const startedMs = performance.now();
    const { problems } = check(`by_name:\n${levels.join("\n")}`);
    assert.match(problems.join("\n"), /stands for more than/);
    assert.ok(performance.now() - startedMs < 30_000);
  });
});

test("checks the contract's own messages", () => {
  const text = `
resources:
  - name: web
    container_service:
      container:
        env: [{name: A, value: 8080}]
        ports: [{containerPort: "80"}]
      scalling: {replicas: 2}
`;
  assert.deepEqual(check(text, forestSchema, "forest.v1.ApplyResourcesRequest").problems, [
    'm:6:32: resources[0].container_service.container.env[0].value: must be text; write it in quotes: "8080"',
    'm:8:7: resources[0].container_service.scalling: unknown field "scalling" (did you mean "scaling"?)',
  ]);
});
