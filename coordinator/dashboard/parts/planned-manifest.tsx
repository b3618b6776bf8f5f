import type { PlannedManifest } from "../manifest/plan-manifest.ts";
import { Plan, Planned } from "./plan-view.tsx";

/** Shows the plan of a pasted manifest, the converted manifest, and the omitted parts. */
export function ManifestPlan({ planned }: { readonly planned: PlannedManifest }) {
  const { converted, losses, notes, objects, plans } = planned;
  return (
    <>
      {losses.length > 0 && (
        <section class="card" aria-label="Left out">
          <h2>Left out</h2>
          <p>
            Forage has no counterpart for these parts. <code>forage apply --lossy</code> leaves them out, too.
          </p>
          <ul>
            {losses.map((loss) => (
              <li key={loss}>{loss}</li>
            ))}
          </ul>
        </section>
      )}
      {converted !== undefined && converted !== "" && (
        <section aria-label="Converted manifest">
          <h2>Converted manifest</h2>
          <p class="quiet">
            The resources that Forage applies for it. Objects such as secrets are not part of a manifest.
          </p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard. */}
          <pre class="converted" tabIndex={0}>
            {converted}
          </pre>
        </section>
      )}
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
      {objects.length > 0 && (
        <section aria-label="Plan for objects">
          <h2>Objects</h2>
          {objects.map(({ namespace, plan }) => (
            <Planned key={`${namespace}/${plan.kind}/${plan.name}`} resource={plan} />
          ))}
        </section>
      )}
      {plans.map(({ namespace, plan }, index) => (
        <section key={index} aria-label={`Plan for namespace ${namespace}`}>
          <h2>Namespace {namespace}</h2>
          <Plan plan={plan} />
        </section>
      ))}
    </>
  );
}
