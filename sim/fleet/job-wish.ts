import type { Random } from "@forage/common/random";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { imageOf, type ProgramKind } from "./programs.ts";
import type { Wish } from "./wish.ts";

/** The desired state of a job. */
export class JobWish implements Wish {
  readonly name: string;
  readonly #random: Random;
  readonly #config: {
    readonly completions: number;
    parallelism: number;
    readonly completionMode: string;
    readonly backoffLimit: number;
    readonly activeDeadlineSeconds: bigint;
    readonly ttlSecondsAfterFinished: bigint;
    readonly restartPolicy: string;
  };
  #kind: ProgramKind;
  #version = 1;

  constructor(name: string, random: Random) {
    this.name = name;
    this.#random = random;
    this.#kind = aKind(random);
    const indexed = random.chance(0.5);
    this.#config = {
      completions: indexed ? 1 + random.below(6) : random.below(6),
      parallelism: 1 + random.below(4),
      completionMode: indexed ? "Indexed" : "NonIndexed",
      backoffLimit: 1 + random.below(5),
      activeDeadlineSeconds: random.chance(0.2) ? BigInt(30 + random.below(120)) : 0n,
      ttlSecondsAfterFinished: random.chance(0.3) ? 20n : 0n,
      restartPolicy: random.pick(["OnFailure", "Never"]),
    };
  }

  get words(): string {
    const { completions, parallelism, completionMode, restartPolicy } = this.#config;
    return `${completions} × ${this.#kind}, ${parallelism} at a time, ${completionMode}, ${restartPolicy}`;
  }

  change(): string {
    if (this.#random.chance(0.3)) {
      this.#config.parallelism = 1 + this.#random.below(4);
      return `runs ${this.#config.parallelism} at a time`;
    }
    this.#kind = aKind(this.#random);
    this.#version++;
    return `gets a ${this.#kind} image`;
  }

  mend(): void {
    if (this.#kind === "task") return;
    this.#kind = "task";
    this.#version++;
  }

  resource(): ForageResource {
    const value = {
      container: {
        name: "main",
        image: imageOf(this.#kind, this.#version),
        resources: { requests: { cpu: "250m", memory: "64Mi" } },
      },
      jobConfig: { ...this.#config },
    };
    return ForageResource.fromPartial({ name: this.name, spec: { $case: "job", value } });
  }
}

function aKind(random: Random): ProgramKind {
  return random.chance(0.5) ? "task" : random.pick(["poortask", "poortask", "badtask", "missing"]);
}
