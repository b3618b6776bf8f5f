import { CONTAINER } from "../../../../test/support/forest/workload-samples.ts";
import { describeSpec } from "../../../../test/support/spec-cases.ts";

const volume = ($case: string, value: object) => ({ volumes: [{ name: "v", source: { $case, value } }] });
const items = (...list: readonly object[]) => volume("secret", { secretName: "s", items: list });
const mounts = (...list: readonly object[]) => ({
  ...volume("emptyDir", {}),
  container: { ...CONTAINER, volumeMounts: list },
});
const SECRET = "volumes[0].secret";

describeSpec("container_service", "volumes", [
  ["no name", { volumes: [{ source: { $case: "emptyDir", value: {} } }] }, ["volumes[0].name"]],
  [
    "the name of the agent's own volume",
    { volumes: [{ name: "forage-identity", source: { $case: "emptyDir", value: {} } }] },
    ["volumes[0].name"],
  ],
  ["no source", { volumes: [{ name: "v" }] }, ["volumes[0]"]],
  [
    "65",
    {
      volumes: Array.from({ length: 65 }, (_, i) => ({
        name: `v${i}`,
        source: { $case: "emptyDir", value: {} },
      })),
    },
    ["volumes"],
  ],
  ["memory", volume("emptyDir", { medium: "Memory", sizeLimit: "1Gi" }), []],
  ["an unknown medium", volume("emptyDir", { medium: "SSD" }), ["volumes[0].empty_dir.medium"]],
  [
    "a size that is not a quantity",
    volume("emptyDir", { sizeLimit: "big" }),
    ["volumes[0].empty_dir.size_limit"],
  ],
  ["a secret", items({ key: "a", path: "b/c", mode: 0o400 }, { key: "a", path: "d" }), []],
  ["no secret", volume("secret", {}), [`${SECRET}.secret_name`]],
  ["a mode beyond 0777", volume("secret", { secretName: "s", defaultMode: 644 }), [`${SECRET}.default_mode`]],
  ["an item without a key", items({ path: "b" }), [`${SECRET}.items[0].key`]],
  ["an item without a path", items({ key: "a" }), [`${SECRET}.items[0].path`]],
  ["an item that leaves the volume", items({ key: "a", path: "../b" }), [`${SECRET}.items[0].path`]],
  ["an item at ..data", items({ key: "a", path: "..data" }), [`${SECRET}.items[0].path`]],
  ["an item at an absolute path", items({ key: "a", path: "/b" }), [`${SECRET}.items[0].path`]],
  ["an item's mode beyond 0777", items({ key: "a", path: "b", mode: 0o1777 }), [`${SECRET}.items[0].mode`]],
  [
    "two items at one path",
    items({ key: "a", path: "x" }, { key: "b", path: "./x" }),
    [`${SECRET}.items[1].path`],
  ],
  ["no config map", volume("configMap", {}), ["volumes[0].config_map.config_map_name"]],
  ["no claim", volume("pvc", {}), ["volumes[0].pvc.claim_name"]],
  ["a host's directory", volume("hostPath", { path: "/var/log", type: "Directory" }), []],
  ["a relative host path", volume("hostPath", { path: "log" }), ["volumes[0].host_path.path"]],
  ["a host path with ..", volume("hostPath", { path: "/var/../etc" }), ["volumes[0].host_path.path"]],
  [
    "an unknown type of host path",
    volume("hostPath", { path: "/a", type: "Dir" }),
    ["volumes[0].host_path.type"],
  ],
  ["NFS", volume("nfs", { server: "nfs.example.com", path: "/a" }), []],
  ["NFS with an option for a server", volume("nfs", { server: "-o", path: "/a" }), ["volumes[0].nfs.server"]],
  ["NFS with a relative path", volume("nfs", { server: "a", path: "b" }), ["volumes[0].nfs.path"]],
]);

describeSpec("container_service", "volume mounts", [
  ["one", mounts({ name: "v", mountPath: "/data", subPath: "a/b" }), []],
  ["no name", mounts({ mountPath: "/data" }), ["container.volume_mounts[0].name"]],
  [
    "a volume that doesn't exist",
    mounts({ name: "w", mountPath: "/data" }),
    ["container.volume_mounts[0].name"],
  ],
  ["no path", mounts({ name: "v" }), ["container.volume_mounts[0].mount_path"]],
  ["the root", mounts({ name: "v", mountPath: "/" }), ["container.volume_mounts[0].mount_path"]],
  [
    "a path with a colon",
    mounts({ name: "v", mountPath: "/a:ro" }),
    ["container.volume_mounts[0].mount_path"],
  ],
  [
    "one place twice",
    mounts({ name: "v", mountPath: "/data" }, { name: "v", mountPath: "/data/" }),
    ["container.volume_mounts[1].mount_path"],
  ],
  [
    "a sub-path that leaves the volume",
    mounts({ name: "v", mountPath: "/d", subPath: "a/../.." }),
    ["container.volume_mounts[0].sub_path"],
  ],
  [
    "an absolute sub-path",
    mounts({ name: "v", mountPath: "/d", subPath: "/a" }),
    ["container.volume_mounts[0].sub_path"],
  ],
]);
