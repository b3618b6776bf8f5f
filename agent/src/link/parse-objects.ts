import type { ObjectData, PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { ObjectContent, PodObjects } from "../pods/pod.ts";

/** Returns the objects that the pod refers to, from its assignment. */
export function parseObjects(assignment: PodAssignment): PodObjects {
  const { secrets, configMaps, registryCredentials, identityToken, template } = assignment;
  return {
    secrets: secrets.map(contentOf),
    configMaps: configMaps.map(contentOf),
    envVersions: template?.objectVersions ?? {},
    registryCredentials: registryCredentials.map(({ server, username, password }) => ({
      server,
      username,
      password,
    })),
    ...(identityToken && { identityToken: identityToken.token }),
  };
}

function contentOf({ name, version, current, data }: ObjectData): ObjectContent {
  return { name, version, current, data: new Map(Object.entries(data)) };
}
