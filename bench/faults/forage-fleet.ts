import { IMAGE, type LabFleet } from "../../hack/system/lab-fleet.ts";
import { COMMAND, type MeasuredFleet, REPLICAS } from "./measured-fleet.ts";

const SERVICE = {
  name: "idle",
  containerService: {
    scaling: { replicas: REPLICAS },
    podConfig: {
      labels: { app: "idle" },
      topologySpreadConstraints: [
        {
          ...{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" },
          labelSelector: { matchLabels: { app: "idle" } },
        },
      ],
    },
    container: {
      ...{ name: "main", image: IMAGE, imagePullPolicy: "IfNotPresent", command: COMMAND },
      resources: { requests: { cpu: "10m", memory: "16Mi" } },
    },
  },
};

/** Installs Forage's packages and deploys the containers. */
export async function startForage(fleet: LabFleet): Promise<MeasuredFleet> {
  const hosts = fleet.lab.hosts.filter(({ runsAgent }) => runsAgent).map(({ name }) => name);
  await fleet.installCoordinator();
  for (const host of hosts) await fleet.joinHost(host);
  await fleet.loadImage(...hosts);
  await fleet.scene.apply([SERVICE]);
  return {
    ...{ lab: fleet.lab, namespace: "forage", unit: "forage-agent.service" },
    isReady: async () => {
      const nodes = await fleet.scene.nodes();
      return nodes.length === hosts.length && nodes.every(({ isReady }) => isReady);
    },
  };
}
