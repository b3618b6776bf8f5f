import { PodAssignment, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { Container, PodConfig } from "@forage/proto/forest/v1/forage";

export interface AssignmentShape {
  readonly uid: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly port?: number;
  readonly graceSeconds?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly container?: Partial<Container>;
  readonly template?: Partial<PodTemplate>;
}

/** Returns a pod with one container, `main`. */
export function anAssignment(shape: AssignmentShape): PodAssignment {
  const {
    uid,
    image = "localhost/forage/busybox:1",
    command = [],
    args = [],
    port,
    graceSeconds = 1,
    env = {},
  } = shape;
  const container = Container.fromPartial({
    name: "main",
    image,
    command: [...command],
    args: [...args],
    env: Object.entries(env).map(([name, value]) => ({ name, valueSource: { $case: "value", value } })),
    ports: port === undefined ? [] : [{ name: "", containerPort: port, protocol: "TCP" }],
    ...shape.container,
  });
  return PodAssignment.fromPartial({
    uid,
    namespace: "default",
    name: `pod-${uid}`,
    workloadKind: "container_service",
    workloadName: "web",
    template: PodTemplate.fromPartial({
      container,
      podConfig: PodConfig.fromPartial({ terminationGracePeriodSeconds: graceSeconds }),
      ...shape.template,
    }),
    specHash: `hash-${uid}`,
  });
}
