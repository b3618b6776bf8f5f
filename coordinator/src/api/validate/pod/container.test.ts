import { CONTAINER } from "../../../../test/support/forest/workload-samples.ts";
import { describeSpec, inContainer } from "../../../../test/support/spec-cases.ts";

const PROBE = { handler: { $case: "tcpSocket", value: { port: 80 } } };

describeSpec("container_service", "container", [
  ["a name with a dot", inContainer({ name: "a.b" }), ["container.name"]],
  ["no name", inContainer({ name: "" }), ["container.name"]],
  ["no image", inContainer({ image: "" }), ["container.image"]],
  ["an image that looks like a flag", inContainer({ image: "--privileged" }), ["container.image"]],
  ["a command that looks like a flag", inContainer({ command: ["--privileged"], args: ["-v"] }), []],
  ["a NUL in an argument", inContainer({ args: ["a", "b\0"] }), ["container.args[1]"]],
  ["a relative working directory", inContainer({ workingDir: "srv" }), ["container.working_dir"]],
  ["an unknown pull policy", inContainer({ imagePullPolicy: "Sometimes" }), ["container.image_pull_policy"]],
  ["an argument of 128 KiB less its NUL", inContainer({ args: ["x".repeat(131_071)] }), []],
  ["an argument of 128 KiB", inContainer({ command: ["x".repeat(131_072)] }), ["container.command[0]"]],
]);

describeSpec("container_service", "probes and hooks of init containers", [
  ["none", { initContainers: [{ ...CONTAINER, name: "init" }] }, []],
  [
    "a probe",
    { initContainers: [{ ...CONTAINER, name: "init", readinessProbe: PROBE }] },
    ["init_containers[0].readiness_probe"],
  ],
  [
    "a hook",
    { initContainers: [{ ...CONTAINER, name: "init", lifecycle: {} }] },
    ["init_containers[0].lifecycle"],
  ],
  ["a sidecar's", { sidecars: [{ ...CONTAINER, name: "side", readinessProbe: PROBE, lifecycle: {} }] }, []],
]);
