import type { SampleTable } from "./sample-table.ts";

const SECURITY = {
  run_as_user: [1000n, 0n],
  run_as_group: [1000n, 0n],
  run_as_non_root: [true, false],
  seccomp_profile: ["RuntimeDefault", "Unconfined", "profiles/audit.json", "/etc/forage/audit.json", ""],
};
const PROBE_SECONDS = [10, 0, 604_800];

export const POD_SAMPLES: SampleTable = {
  Container: {
    base: { name: "main", image: "registry.example/team/app:v1" },
    values: {
      name: ["main", "c-2"],
      image: [
        "registry.example/team/app:v1",
        "busybox",
        "localhost:5000/a/b_c@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      ],
      command: ["/bin/app", "--flag", ""],
      args: ["-x", "ü", ""],
      working_dir: ["/srv", ""],
      image_pull_policy: ["Always", "IfNotPresent", "Never", ""],
      stdin: [true, false],
      tty: [true, false],
    },
  },
  EnvVar: {
    base: { name: "MODE" },
    values: {
      name: ["MODE", "my.var-1", "_x"],
      value: ["fast", "", "$(OTHER) and\nlines"],
      field_ref: [
        "metadata.name",
        "status.podIP",
        "metadata.labels['app.example/name']",
        "metadata.annotations['A']",
      ],
      resource_field_ref: ["limits.cpu", "requests.ephemeral-storage"],
    },
  },
  SecretKeyRef: {
    base: { secretName: "db", key: "password" },
    values: { secret_name: ["db", "a.b-c"], key: ["password", ".hidden", "A_b-1"] },
  },
  ConfigKeyRef: {
    base: { configName: "app", key: "mode" },
    values: { config_name: ["app"], key: ["mode", "app.properties"] },
  },
  ContainerPort: {
    base: { containerPort: 8080 },
    values: {
      name: ["http", "a1", ""],
      container_port: [8080, 1, 65_535],
      protocol: ["TCP", "UDP", "SCTP", ""],
    },
  },
  ResourceRequirements: { base: {}, values: {} },
  ResourceList: {
    base: {},
    values: {
      cpu: ["100m", "0.1", "0", ""],
      memory: ["64Mi", "64e6", "1", ""],
      ephemeral_storage: ["1Gi", ""],
      extended: [{ "nvidia.com/gpu": "1" }, { "a.example/b": "0", "b.example/C": "2" }],
    },
  },
  VolumeMount: {
    base: { name: "v0", mountPath: "/data" },
    values: {
      name: ["v0"],
      mount_path: ["/data", "/var/lib/app/"],
      sub_path: ["a/b", ""],
      read_only: [true, false],
    },
  },
  Volume: { base: { name: "v0", source: { $case: "emptyDir", value: {} } }, values: { name: ["v0"] } },
  EmptyDirVolume: { base: {}, values: { medium: ["Memory", ""], size_limit: ["256Mi", ""] } },
  SecretVolume: {
    base: { secretName: "db" },
    values: { secret_name: ["db"], default_mode: [0o400, 0o777, 0], optional: [true, false] },
  },
  ConfigMapVolume: {
    base: { configMapName: "app" },
    values: { config_map_name: ["app"], default_mode: [0o644, 0], optional: [true, false] },
  },
  KeyToPath: {
    base: { key: "password", path: "p" },
    values: { key: ["password"], path: ["p", "a/b.txt"], mode: [0o400, 0] },
  },
  PVCVolume: {
    base: { claimName: "data" },
    values: { claim_name: ["data", "a.b"], read_only: [true, false] },
  },
  HostPathVolume: {
    base: { path: "/var/log" },
    values: { path: ["/var/log"], type: ["Directory", "DirectoryOrCreate", "Socket", ""] },
  },
  NfsVolume: {
    base: { server: "nfs.example.com", path: "/export" },
    values: {
      server: ["nfs.example.com", "192.0.2.7", "2001:db8::7"],
      path: ["/export"],
      read_only: [true, false],
    },
  },
  Probe: {
    base: { handler: { $case: "tcpSocket", value: { port: 8080 } } },
    values: {
      initial_delay_seconds: PROBE_SECONDS,
      period_seconds: PROBE_SECONDS,
      timeout_seconds: PROBE_SECONDS,
      success_threshold: [1, 0],
      failure_threshold: [3, 0],
    },
  },
  HttpGetProbe: {
    base: { port: 8080 },
    values: { path: ["/healthz?full=1", "/", ""], port: [8080], scheme: ["HTTP", "HTTPS", ""] },
  },
  HttpHeader: {
    base: { name: "X-Probe" },
    values: { name: ["X-Probe", "Host"], value: ["yes", "", "a b"] },
  },
  TcpSocketProbe: { base: { port: 8080 }, values: { port: [8080, 65_535] } },
  ExecProbe: { base: { command: ["true"] }, values: { command: ["/bin/check"] } },
  GrpcProbe: { base: { port: 9090 }, values: { port: [9090], service: ["my.Service", ""] } },
  Lifecycle: { base: {}, values: {} },
  LifecycleHandler: { base: { action: { $case: "exec", value: { command: ["true"] } } }, values: {} },
  ContainerSecurityContext: {
    base: {},
    values: {
      ...SECURITY,
      read_only_root_filesystem: [true, false],
      privileged: [true, false],
      allow_privilege_escalation: [true, false],
      se_linux_type: ["container_t", ""],
    },
  },
  Capabilities: { base: {}, values: { add: ["NET_BIND_SERVICE", "SYS_TIME"], drop: ["ALL", "NET_RAW"] } },
  PodSecurityContext: {
    base: {},
    values: {
      ...SECURITY,
      fs_group: [2000n, 0n],
      supplemental_groups: [3000n, 0n],
      fs_group_change_policy: ["OnRootMismatch", "Always", ""],
    },
  },
  PodConfig: {
    base: {},
    values: {
      service_account_name: ["web", ""],
      restart_policy: ["Always", ""],
      termination_grace_period_seconds: [30, 0, 604_800],
      dns_policy: ["ClusterFirst", "Default", ""],
      host_network: [true, false],
      node_selector: [{ zone: "a" }, { "example.com/disk": "" }],
      image_pull_secrets: ["registry"],
      priority_class_name: ["high", ""],
      runtime_class_name: ["gvisor", ""],
      annotations: [{ "example.com/Note": "anything" }],
      labels: [{ tier: "front" }],
    },
  },
  PodDnsConfig: {
    base: {},
    values: { nameservers: ["192.0.2.53", "2001:db8::53"], searches: ["example.com", "a.example."] },
  },
  DnsOption: { base: { name: "ndots" }, values: { name: ["ndots", "use-vc"], value: ["2", ""] } },
};
