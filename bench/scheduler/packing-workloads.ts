import { randomOf } from "@forage/common/random";
import type { NodeSpec, PodSpec } from "@forage/scheduler";

export interface Size {
  /** Thousandths of a cpu. */
  readonly cpu: number;
  readonly memoryMi: number;
  readonly gpu: number;
}

export interface PackingWorkload {
  readonly name: "W1" | "W2" | "W3";
  readonly nodes: readonly Size[];
  readonly pods: readonly Size[];
}

const GI = 1024;

/** Returns 2,000 pods, half of them heavy in cpu and half in memory, for 600 nodes of 16 cpus and 64Gi. */
export function complementary(seed: number): PackingWorkload {
  const random = randomOf(seed);
  const pods = Array.from({ length: 2_000 }, (_, i) =>
    i % 2 === 0
      ? {
          cpu: random.pick([500, 1_000, 2_000, 4_000]),
          memoryMi: random.pick([512, GI, 2 * GI, 4 * GI]),
          gpu: 0,
        }
      : { cpu: random.pick([100, 250, 500]), memoryMi: random.pick([2, 4, 8, 16]) * GI, gpu: 0 },
  );
  return {
    name: "W1",
    pods,
    nodes: Array.from({ length: 600 }, () => ({ cpu: 16_000, memoryMi: 64 * GI, gpu: 0 })),
  };
}

/** Returns 4,000 pods of a few sizes, some with half or twice the memory, for 700 nodes of three kinds. */
export function tshirt(seed: number): PackingWorkload {
  const random = randomOf(seed);
  const pods = Array.from({ length: 4_000 }, () => {
    const cpu = random.pick([250, 250, 250, 500, 500, 500, 1_000, 1_000, 2_000]);
    return { cpu, memoryMi: cpu * 2.048 * random.pick([0.5, 1, 1, 2]), gpu: 0 };
  });
  const nodes = Array.from({ length: 700 }, (_, i) => {
    if (i % 10 < 6) return { cpu: 4_000, memoryMi: 8 * GI, gpu: 0 };
    return i % 10 < 9
      ? { cpu: 8_000, memoryMi: 32 * GI, gpu: 0 }
      : { cpu: 32_000, memoryMi: 64 * GI, gpu: 0 };
  });
  return { name: "W2", pods, nodes };
}

/**
 * Returns 1,150 pods that request 978 of 1,000 GPUs, for 100 nodes with 8, 100 with 2 and 100 with none. Pods with 8 or
 * 4 GPUs fill the nodes with 8 exactly, so one small pod on the wrong node leaves a large one without a node.
 */
export function devices(seed: number): PackingWorkload {
  const random = randomOf(seed);
  const counts = [...repeat(8, 80), ...repeat(4, 40), ...repeat(2, 60), ...repeat(1, 58)];
  const pods = counts.map((gpu) => ({
    cpu: random.pick([1_000, 2_000, 4_000, 8_000]) * gpu,
    memoryMi: random.pick([4, 8, 16, 32]) * GI * gpu,
    gpu,
  }));
  while (pods.length < 1_150) {
    pods.push({
      cpu: random.pick([500, 1_000, 2_000, 4_000]),
      memoryMi: random.pick([1, 2, 4, 8]) * GI,
      gpu: 0,
    });
  }
  const nodes = [
    ...repeat({ cpu: 64_000, memoryMi: 512 * GI, gpu: 8 }, 100),
    ...repeat({ cpu: 16_000, memoryMi: 64 * GI, gpu: 2 }, 100),
    ...repeat({ cpu: 32_000, memoryMi: 128 * GI, gpu: 0 }, 100),
  ];
  return { name: "W3", pods, nodes };
}

export function nodeSpec({ cpu, memoryMi, gpu }: Size, index: number): NodeSpec {
  const gpus = gpu > 0 ? { "nvidia.com/gpu": String(gpu) } : {};
  const allocatable = { cpu: `${cpu}m`, memory: `${memoryMi}Mi`, pods: "250", ...gpus };
  return { name: `node-${index}`, labels: { "kubernetes.io/hostname": `node-${index}` }, allocatable };
}

export function podSpec({ cpu, memoryMi, gpu }: Size, index: number): PodSpec {
  const gpus = gpu > 0 ? { "nvidia.com/gpu": String(gpu) } : {};
  const requests = { cpu: `${cpu}m`, memory: `${memoryMi}Mi`, ...gpus };
  return { name: `pod-${index}`, namespace: "default", containers: [{ requests }] };
}

function repeat<T>(item: T, times: number): T[] {
  return Array.from({ length: times }, () => item);
}
