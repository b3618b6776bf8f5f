import type { Random } from "@forage/common/random";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { imageOf, type ProgramKind } from "./programs.ts";
import type { Wish } from "./wish.ts";

/** The desired state of a cron job. */
export class CronWish implements Wish {
  readonly name: string;
  readonly #random: Random;
  readonly #concurrencyPolicy: string;
  readonly #startingDeadlineSeconds: bigint;
  #schedule: string;
  #kind: ProgramKind;
  #suspend = false;
  #version = 1;

  constructor(name: string, random: Random) {
    this.name = name;
    this.#random = random;
    this.#schedule = aSchedule(random);
    this.#kind = aKind(random);
    this.#concurrencyPolicy = random.pick(["Allow", "Forbid", "Replace"]);
    this.#startingDeadlineSeconds = random.chance(0.3) ? 15n : 0n;
  }

  get words(): string {
    return `${this.#schedule}, ${this.#kind}, ${this.#concurrencyPolicy}`;
  }

  change(): string {
    const choice = this.#random.next();
    if (choice < 0.4) {
      this.#suspend = !this.#suspend;
      return this.#suspend ? "is suspended" : "goes on";
    }
    if (choice < 0.6) {
      this.#schedule = aSchedule(this.#random);
      return `runs at ${this.#schedule}`;
    }
    this.#kind = aKind(this.#random);
    this.#version++;
    return `gets a ${this.#kind} image`;
  }

  /** Suspends the cron job, because its runs would go on for ever. */
  mend(): void {
    this.#suspend = true;
  }

  resource(): ForageResource {
    const value = {
      schedule: this.#schedule,
      concurrencyPolicy: this.#concurrencyPolicy,
      startingDeadlineSeconds: this.#startingDeadlineSeconds,
      suspend: this.#suspend,
      container: {
        name: "main",
        image: imageOf(this.#kind, this.#version),
        resources: { requests: { cpu: "250m", memory: "64Mi" } },
      },
      jobConfig: { completions: 1, parallelism: 1, backoffLimit: 2, restartPolicy: "Never" },
    };
    return ForageResource.fromPartial({ name: this.name, spec: { $case: "cronJob", value } });
  }
}

function aSchedule(random: Random): string {
  return random.pick(["* * * * *", "*/2 * * * *", "1-59/3 * * * *"]);
}

function aKind(random: Random): ProgramKind {
  return random.pick(["task", "task", "poortask", "badtask"]);
}
