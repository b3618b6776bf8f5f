/** The scheduler's input and output. Names and meanings follow Kubernetes, also for absent fields. */

/** `namespace/name`, unique in a fleet. */
export type PodKey = `${string}/${string}`;

/**
 * `kube-most` and `kube-least` reproduce kube-scheduler's weighted integer scores with the MostAllocated or LeastAllocated strategy;
 * `pack` (the default) packs tightly and spreads the replicas of one workload.
 */
export type Profile = "pack" | "kube-most" | "kube-least";

export type TaintEffect = "NoSchedule" | "PreferNoSchedule" | "NoExecute";

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: TaintEffect;
}

/**
 * As in Kubernetes: operator "" or absent means Equal; an empty key with Exists tolerates everything; an empty effect
 * means every effect.
 */
export interface Toleration {
  readonly key?: string;
  readonly operator?: "" | "Equal" | "Exists";
  readonly value?: string;
  readonly effect?: "" | TaintEffect;
}

/**
 * Quantities in Kubernetes' notation by resource name (`cpu`, `memory`, `ephemeral-storage`, `pods`,
 * `vendor.com/thing`).
 */
export type ResourceList = Readonly<Record<string, string>>;

export interface NodeSpec {
  readonly name: string;
  /**
   * The node's labels. `zone` and `hostname` in topology keys mean topology.kubernetes.io/zone and
   * kubernetes.io/hostname, in either direction.
   */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints?: readonly Taint[];
  readonly unschedulable?: boolean;
  /** The total that pods may request. A resource that is not listed is 0. */
  readonly allocatable: ResourceList;
  /** The sizes in bytes of the node's images, by name. */
  readonly images?: Readonly<Record<string, number>>;
  /** Runtime classes that the node supports. Absent: only the default one (""). */
  readonly runtimeClasses?: readonly string[];
}

export type SelectorOperator = "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";

/** A requirement on a label. Gt and Lt exist only for nodes. */
export interface SelectorRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values?: readonly string[];
}

/**
 * A term of node affinity. Expressions and fields are ANDed; a term with neither matches nothing. The only field is
 * `metadata.name`.
 */
export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly SelectorRequirement[];
  readonly matchFields?: readonly SelectorRequirement[];
}

/** A selector of pods. `{}` matches every pod; an absent selector matches none. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly SelectorRequirement[];
}

export interface NodeAffinity {
  /** Required terms, which are ORed. Absent: no requirement. Present and empty: no node matches. */
  readonly required?: readonly NodeSelectorTerm[];
  readonly preferred?: readonly { readonly weight: number; readonly preference: NodeSelectorTerm }[];
}

export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelector;
  readonly topologyKey: string;
  /** The namespaces of the selected pods. Absent or empty: the pod's own namespace. */
  readonly namespaces?: readonly string[];
}

export interface PodAffinity {
  readonly required?: readonly PodAffinityTerm[];
  readonly preferred?: readonly { readonly weight: number; readonly term: PodAffinityTerm }[];
}

export interface TopologySpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: "DoNotSchedule" | "ScheduleAnyway";
  readonly labelSelector?: LabelSelector;
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: "Honor" | "Ignore";
  readonly nodeTaintsPolicy?: "Honor" | "Ignore";
  readonly matchLabelKeys?: readonly string[];
}

/** A host port. Protocol "" is TCP; hostIP "" is 0.0.0.0. */
export interface HostPort {
  readonly port: number;
  readonly protocol?: string;
  readonly hostIP?: string;
}

export interface ContainerSpec {
  readonly requests?: ResourceList;
  /** A limit without a request is also the request. */
  readonly limits?: ResourceList;
  readonly hostPorts?: readonly HostPort[];
}

/**
 * An init container. With restartPolicy Always it is a sidecar, which keeps running beside the containers and counts
 * with them.
 */
export interface InitContainerSpec extends ContainerSpec {
  readonly restartPolicy?: "" | "Always";
}

export interface PodSpec {
  readonly name: string;
  readonly namespace: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The priority; higher is more important. Absent: 0. */
  readonly priority?: number;
  readonly preemptionPolicy?: "Never" | "PreemptLowerPriority";
  readonly containers: readonly ContainerSpec[];
  readonly initContainers?: readonly InitContainerSpec[];
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
  readonly nodeAffinity?: NodeAffinity;
  readonly podAffinity?: PodAffinity;
  readonly podAntiAffinity?: PodAffinity;
  readonly topologySpread?: readonly TopologySpreadConstraint[];
  /**
   * The identity of the owning workload (such as `default/Deployment/web`). Its replicas are spread, and scaled down,
   * together.
   */
  readonly workload?: string;
  /** The workload's revision. If set, the pod's spread constraints count only pods of the same revision. */
  readonly revision?: string;
  /**
   * The nodes to which volume claims restrict the pod: it may run only on a node that all of them list. Absent or
   * empty: no restriction.
   */
  readonly claimNodes?: readonly string[];
  /** A runtime class that the node must support. Absent or "": the default runtime, which every node has. */
  readonly runtimeClass?: string;
  /** The images of all containers, for image locality. */
  readonly images?: readonly string[];
}

/** A disruption budget: at most `disruptionsAllowed` of the selected pods may be preempted now. */
export interface DisruptionBudget {
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector;
  readonly disruptionsAllowed: number;
}

export type FilterName =
  | "NodeUnschedulable"
  | "NodeName"
  | "TaintToleration"
  | "NodeAffinity"
  | "NodePorts"
  | "NodeResourcesFit"
  | "VolumeBinding"
  | "RuntimeClass"
  | "PodTopologySpread"
  | "InterPodAffinity";

/** The reason why a node is not feasible for a pod. */
export interface NodeRejection {
  readonly node: string;
  readonly filter: FilterName;
  /** The text for people, such as `insufficient cpu (needs 600m, 250m free)`. */
  readonly message: string;
  /** The message without the node's own values. Rejections with the same reason are counted together. */
  readonly reason: string;
  /** Whether preempting other pods could help. */
  readonly resolvable: boolean;
}

/** The reasons why a pod is not placed, or the obstacles on other nodes if some are feasible. */
export interface Explanation {
  readonly pod: PodKey;
  readonly nodes: number;
  /** The feasible nodes, sorted. */
  readonly feasible: readonly string[];
  /** One for each other node, sorted by node name. */
  readonly rejections: readonly NodeRejection[];
  /** Rejections counted by reason, most frequent first. */
  readonly reasons: readonly { readonly reason: string; readonly nodes: number; readonly detail: string }[];
  /** The smallest change found that would make the pod fit: `free 350m cpu on node-3`. */
  readonly nearest?: string;
  /**
   * One line for people: `0/12 nodes: 7 insufficient memory (needs 2Gi, largest free 1.2Gi), 5 taint
   * gpu=true:NoSchedule`.
   */
  readonly summary: string;
}

/** Pods to preempt so that the pod fits on the node. */
export interface Preemption {
  readonly node: string;
  readonly victims: readonly PodKey[];
}

export interface Move {
  readonly pod: PodKey;
  readonly from: string;
  readonly to: string;
}

/** A plan of moves to make in this order, each allowed at its time. */
export interface RebalancePlan {
  readonly moves: readonly Move[];
  /** The nodes without movable pods after the moves. */
  readonly emptied: readonly string[];
  /** A text about the gain, for people. */
  readonly summary: string;
}

export interface RebalanceOptions {
  /** `empty-nodes` frees whole nodes; `restore-spread` removes skew within workloads. */
  readonly goal: "empty-nodes" | "restore-spread";
  readonly maxMoves?: number;
  /** Reports whether a pod may be moved. Absent: every pod may. */
  readonly movable?: (pod: PodKey) => boolean;
}
