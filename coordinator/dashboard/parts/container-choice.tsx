export interface ContainerChoiceProps {
  /** The names of the pod's containers. Empty while they are not known. */
  readonly containers: readonly string[];
  /** The container that is meant without a choice. */
  readonly main: string | undefined;
  /** Empty: without a choice. */
  readonly chosen: string;
  readonly onChoose: (container: string) => void;
}

/** Chooses a container of a pod, and shows which one is meant without a choice. */
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
