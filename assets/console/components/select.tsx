/** A select, with the browser's own control, which works with keyboards, touch and screen readers. */
import { Field, type FieldProps } from './field.tsx';

export type Choice = { readonly value: string; readonly label: string; readonly isDisabled?: boolean };

export function Select({
  value,
  onValue,
  choices,
  ...field
}: FieldProps & {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly choices: readonly Choice[];
}) {
  return (
    <Field {...field}>
      {(attributes) => (
        <select
          {...attributes}
          class="input"
          value={value}
          onChange={({ currentTarget }) => onValue(currentTarget.value)}
        >
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value} disabled={choice.isDisabled ?? false}>
              {choice.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
