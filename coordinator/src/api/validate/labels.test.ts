import { describeSpec, inPodConfig } from "../../../test/support/spec-cases.ts";

const many = (count: number, value = "") =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));

describeSpec("container_service", "labels", [
  ["a label", inPodConfig({ labels: { "app.example/name": "web_1" } }), []],
  ["64 labels", inPodConfig({ labels: many(64) }), []],
  ["65 labels", inPodConfig({ labels: many(65) }), ["pod_config.labels"]],
  ["a key with a space", inPodConfig({ labels: { "a b": "" } }), ["pod_config.labels[a b]"]],
  ["a value of 64 characters", inPodConfig({ labels: { a: "x".repeat(64) } }), ["pod_config.labels[a]"]],
  [
    "a key of 5,000 characters, which the path shortens",
    inPodConfig({ labels: { ["x".repeat(5000)]: "" } }),
    [`pod_config.labels[${"x".repeat(100)}…]`],
  ],
]);

describeSpec("container_service", "annotations", [
  ["any text", inPodConfig({ annotations: { "Example.com/A": "any\ntext \0 ü" } }), []],
  ["an empty key", inPodConfig({ annotations: { "": "a" } }), ["pod_config.annotations[]"]],
  ["256 KiB", inPodConfig({ annotations: { a: "x".repeat(256 * 1024 - 1) } }), []],
  ["separate streams", inPodConfig({ annotations: { "forage.dev/log-streams": "separate" } }), []],
  ["combined streams", inPodConfig({ annotations: { "forage.dev/log-streams": "combined" } }), []],
  ...["", "Separate", "split"].map(
    (text) =>
      [
        `streams that are "${text}"`,
        inPodConfig({ annotations: { "forage.dev/log-streams": text } }),
        ["pod_config.annotations[forage.dev/log-streams]"],
      ] as const,
  ),
  ["a byte more", inPodConfig({ annotations: { a: "x".repeat(256 * 1024) } }), ["pod_config.annotations"]],
]);
