import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPolicy } from "@forage/proto/forage/operator/v1/operator";
import { ContainerServiceSpec } from "@forage/proto/forest/v1/forage";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { checkPolicy } from "./check-policy.ts";
import { policyForRole } from "./policy.ts";

type Spec = Parameters<typeof ContainerServiceSpec.fromPartial>[0];
type Policy = Parameters<typeof PodPolicy.fromPartial>[0];

/** Returns the fields of the pod that the policy, for an editor's token, doesn't allow. */
function refused(policy: Policy, spec: Spec): string[] {
  const findings = new Findings();
  const stored = PodPolicy.fromPartial({ role: "editor", ...policy });
  checkPolicy(
    { pod: ContainerServiceSpec.fromPartial(spec), field: new Field(findings) },
    policyForRole("editor", "shop", [stored]),
  );
  return findings.invalidFields.map(({ field }) => field);
}

const onHost = (...ports: readonly number[]): Spec => ({
  podConfig: { hostNetwork: true },
  container: { name: "main", ports: ports.map((containerPort) => ({ containerPort })) },
});
const withDevices = (requests: readonly string[], limits: readonly string[] = []): Spec => {
  const extended = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, "1"]));
  return {
    container: {
      name: "main",
      resources: { requests: { extended: extended(requests) }, limits: { extended: extended(limits) } },
    },
  };
};
const withContext = (securityContext: NonNullable<Spec["container"]>["securityContext"]): Spec => ({
  container: { name: "main", ...(securityContext && { securityContext }) },
});
/** Returns a pod with two host paths, each mounted once. */
const withMounts = (first: object, second: object): Spec => ({
  volumes: ["/reference/a", "/data/b"].map((path, index) => ({
    name: `v${index}`,
    source: { $case: "hostPath" as const, value: { path } },
  })),
  container: {
    name: "main",
    volumeMounts: [first, second].map((mount, index) => ({ name: `v${index}`, ...mount })),
  },
});
const PORTS: Policy = { profile: "privileged", hostPorts: ["8000-8099"] };
const hardened = { runAsNonRoot: true, capabilities: { drop: ["ALL"] } };

const cases: readonly (readonly [string, Policy, Spec, readonly string[]])[] = [
  ["ports of the host up to both ends of a range", PORTS, onHost(8000, 8099), []],
  [
    "ports beside a range",
    PORTS,
    onHost(7999, 8100),
    ["container.ports[0].container_port", "container.ports[1].container_port"],
  ],
  [
    "a single port",
    { profile: "privileged", hostPorts: ["53"] },
    onHost(53, 54),
    ["container.ports[1].container_port"],
  ],
  ["any device without a list", { profile: "baseline" }, withDevices(["vendor.example/gpu"]), []],
  [
    "devices of the policy's list under the privileged profile",
    { profile: "privileged", devices: ["vendor.example/gpu"] },
    withDevices(["vendor.example/gpu", "vendor.example/nic"], ["vendor.example/fpga"]),
    [
      "container.resources.requests.extended[vendor.example/nic]",
      "container.resources.limits.extended[vendor.example/fpga]",
    ],
  ],
  [
    "runtime classes of the policy's list",
    { profile: "privileged", runtimeClasses: ["gvisor"] },
    { podConfig: { runtimeClassName: "kata" } },
    ["pod_config.runtime_class_name"],
  ],
  [
    "a read-only host path that is mounted writable",
    { profile: "baseline", hostPaths: ["/reference:ro", "/data"] },
    withMounts({}, {}),
    ["container.volume_mounts[0].read_only"],
  ],
  [
    "a read-only host path that is mounted read-only",
    { profile: "baseline", hostPaths: ["/reference:ro", "/data"] },
    withMounts({ readOnly: true }, {}),
    [],
  ],
  [
    "a read-only host path that another prefix makes writable",
    { profile: "baseline", hostPaths: ["/reference:ro", "/reference/a", "/data"] },
    withMounts({}, {}),
    [],
  ],
  [
    "a host path that continues the last name of a prefix",
    { profile: "baseline", hostPaths: ["/ref", "/data"] },
    withMounts({}, {}),
    ["volumes[0].host_path.path"],
  ],
  [
    "a restricted container",
    { profile: "restricted" },
    withContext({}),
    ["container.security_context.run_as_non_root", "container.security_context.capabilities.drop"],
  ],
  ["a hardened container", { profile: "restricted" }, withContext(hardened), []],
  [
    "privilege escalation and a default capability under the restricted profile",
    { profile: "restricted" },
    withContext({
      ...hardened,
      allowPrivilegeEscalation: true,
      capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE", "CHOWN"] },
    }),
    [
      "container.security_context.allow_privilege_escalation",
      "container.security_context.capabilities.add[1]",
    ],
  ],
  [
    "a privileged container, if a restricted policy allows it",
    { profile: "restricted", privileged: true },
    withContext({ privileged: true }),
    [],
  ],
];

for (const [what, policy, spec, fields] of cases)
  test(`${fields.length === 0 ? "allows" : "checks"} ${what}`, () => {
    assert.deepEqual(refused(policy, spec), fields);
  });
