export interface ContainerChoiceProps {
  /** The names of the pod's containers; empty until they are known. */
  readonly containers: readonly string[];
  /** The default container. */
  readonly main: string | undefined;
  /** The chosen container; empty means the default. */
  readonly chosen: string;
  readonly onChoose: (container: string) => void;
}

/** A select box for a container of a pod. It shows which container is the default. */
export function ContainerChoice({ containers, main, chosen, onChoose }: ContainerChoiceProps) {
  return (
    <label>
      Container{" "}
      <select
        value={chosen || main}
        disabled={containers.length < 2}
        onChange={({ currentTarget }) => onChoose(currentTarget.value)}
      >
        {containers.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
