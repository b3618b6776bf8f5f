import type { Tone } from "../../src/dashboard/live/rows.ts";
import type { PlanAnswer, PlannedResource } from "../data/wire.ts";
import { Badge } from "./pieces.tsx";

const TONES: Readonly<Record<string, Tone>> = {
  create: "good",
  update: "busy",
  remove: "bad",
  unchanged: "off",
};

/** Shows the fields that an apply would change, and the steps that would follow. */
export function Plan({ plan }: { readonly plan: PlanAnswer }) {
  return (
    <>
      {!plan.changes && <p>Nothing would change.</p>}
      {(plan.resources ?? []).map((resource) => (
        <Planned key={`${resource.kind}/${resource.name}`} resource={resource} />
      ))}
    </>
  );
}

/** Shows the change of one resource or object, and its steps. */
export function Planned({ resource }: { readonly resource: PlannedResource }) {
  const rounds = [...Map.groupBy(resource.steps ?? [], ({ round }) => round ?? 1)];
  return (
    <section class="card" aria-label={`${resource.kind} ${resource.name}`}>
      <h3>
        <Badge tone={TONES[resource.action ?? ""] ?? "off"}>{resource.action}</Badge> {resource.kind}/
        {resource.name}
      </h3>
      {(resource.changes ?? []).length > 0 && (
        <ul class="diff">
          {resource.changes?.map(({ path, before, after }) => (
            <li key={path}>
              <code>{path}</code> {before !== undefined && <del>{before}</del>}{" "}
              {after !== undefined && <ins>{after}</ins>}
            </li>
          ))}
        </ul>
      )}
      {rounds.map(([round, steps]) => (
        <div key={round}>
          <h4>Round {round}</h4>
          <ul>
            {steps.map((step, index) => (
              <li key={`${step.step} ${step.pod} ${index}`}>
                {step.step} {step.count ? `× ${step.count}` : ""} {step.pod} {step.detail}{" "}
                <span class="quiet">{step.why}</span>
                {(step.placements ?? []).map((placement) => (
                  <div class="quiet" key={placement.node}>
                    {placement.pods} on {placement.node || "no node"}: {placement.why}
                  </div>
                ))}
              </li>
            ))}
          </ul>
        </div>
      ))}
      {(resource.notes ?? []).map((note) => (
        <p class="quiet" key={note}>
          {note}
        </p>
      ))}
    </section>
  );
}
