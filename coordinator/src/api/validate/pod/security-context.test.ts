import {
  describeSpec,
  inContainer,
  inPodConfig,
  type SpecCase,
} from "../../../../test/support/spec-cases.ts";

const ofContainer = (securityContext: object) => inContainer({ securityContext });
const ofPod = (securityContext: object) => inPodConfig({ securityContext });
const seccomp = (profile: string, fine: boolean): SpecCase => [
  `the profile "${profile}"`,
  ofContainer({ seccompProfile: profile }),
  fine ? [] : ["container.security_context.seccomp_profile"],
];
const AT = "container.security_context";

describeSpec("container_service", "security of a container", [
  ["a user", ofContainer({ runAsUser: 1000n, runAsGroup: 1000n }), []],
  ["a negative user", ofContainer({ runAsUser: -1n }), [`${AT}.run_as_user`]],
  ["a group beyond 31 bits", ofContainer({ runAsGroup: 2n ** 31n }), [`${AT}.run_as_group`]],
  ["capabilities", ofContainer({ capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] } }), []],
  ["an unknown one", ofContainer({ capabilities: { add: ["NET"] } }), [`${AT}.capabilities.add[0]`]],
  ["one with CAP_", ofContainer({ capabilities: { drop: ["CAP_KILL"] } }), [`${AT}.capabilities.drop[0]`]],
  [
    "one added and dropped",
    ofContainer({ capabilities: { add: ["KILL"], drop: ["KILL"] } }),
    [`${AT}.capabilities.drop[0]`],
  ],
  ["an SELinux type", ofContainer({ seLinuxType: "container_t" }), []],
  ["an SELinux type with an option", ofContainer({ seLinuxType: "a,level=s0" }), [`${AT}.se_linux_type`]],
  seccomp("RuntimeDefault", true),
  seccomp("Unconfined", true),
  seccomp("profiles/audit.json", true),
  seccomp("/etc/forage/audit.json", true),
  seccomp("runtimedefault", false),
  seccomp("audit", false),
  seccomp("../audit.json", false),
  seccomp("a/../../b.json", false),
]);

describeSpec("container_service", "security of a pod", [
  ["groups", ofPod({ fsGroup: 1n, supplementalGroups: [1n, 2n], fsGroupChangePolicy: "OnRootMismatch" }), []],
  ["a negative user", ofPod({ runAsUser: -1n }), ["pod_config.security_context.run_as_user"]],
  ["a negative group", ofPod({ runAsGroup: -1n }), ["pod_config.security_context.run_as_group"]],
  ["a negative group of files", ofPod({ fsGroup: -1n }), ["pod_config.security_context.fs_group"]],
  [
    "a negative further group",
    ofPod({ supplementalGroups: [1n, -1n] }),
    ["pod_config.security_context.supplemental_groups[1]"],
  ],
  [
    "257 further groups",
    ofPod({ supplementalGroups: Array.from({ length: 257 }, (_, i) => BigInt(i)) }),
    ["pod_config.security_context.supplemental_groups"],
  ],
  [
    "an unknown policy",
    ofPod({ fsGroupChangePolicy: "Never" }),
    ["pod_config.security_context.fs_group_change_policy"],
  ],
  [
    "an unknown profile",
    ofPod({ seccompProfile: "Default" }),
    ["pod_config.security_context.seccomp_profile"],
  ],
]);
