import { useCall } from "../data/app.ts";
import type { WhyAnswer } from "../data/wire.ts";
import { Badge, Failure } from "./pieces.tsx";

/**
 * Explains the state of an object, with advice. The explanation is requested again whenever
 * `changed` differs.
 */
export function Why({
  namespace,
  kind,
  name,
  changed,
}: {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly changed: string;
}) {
  const { answer, error } = useCall<WhyAnswer>("why", { namespace, kind, name }, [changed]);
  if (answer === undefined) return <Failure error={error} />;
  return (
    <section class="card" aria-label="Why">
      <h2>Why</h2>
      <p>
        <Badge tone={answer.healthy ? "good" : "bad"}>{answer.summary}</Badge>
      </p>
      {(answer.causes ?? []).map((cause) => (
        <div class="cause" key={`${cause.reason} ${cause.message}`}>
          <p>
            <strong>{cause.reason}</strong> {cause.message}
          </p>
          {(cause.details ?? []).length > 0 && <pre>{cause.details?.join("\n")}</pre>}
          {cause.advice && (
            <p class="quiet">
              What to do: <code>{cause.advice}</code>
            </p>
          )}
        </div>
      ))}
    </section>
  );
}
