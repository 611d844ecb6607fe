/** A password that somebody chooses, written twice; the same for the first administrator and for everybody later. */
import { useState } from 'preact/hooks';
import { TextField } from '../components/field.tsx';

export type NewPassword = {
  readonly first: string;
  readonly again: string;
};

export const noPassword: NewPassword = { first: '', again: '' };

/** Whether it was written, and twice the same. */
export const isSure = ({ first, again }: NewPassword): boolean => first !== '' && first === again;

export function NewPasswordFields({
  label,
  value,
  onValue,
  error,
}: {
  readonly label: string;
  readonly value: NewPassword;
  readonly onValue: (value: NewPassword) => void;
  readonly error: string | undefined;
}) {
  const [wasLeft, setLeft] = useState(false);
  const { first, again } = value;
  // While somebody types, the beginning of the same password is no mistake.
  const differs = again !== '' && (wasLeft ? again !== first : !first.startsWith(again));
  const plain = { type: 'password', autocomplete: 'new-password' } as const;
  return (
    <>
      <TextField
        {...plain}
        label={label}
        name="new-password"
        hint="At least 12 characters. A sentence that only you would write is good."
        value={first}
        onValue={(text) => onValue({ first: text, again })}
        error={error}
      />
      <TextField
        {...plain}
        label={`${label}, once more`}
        name="new-password-again"
        value={again}
        onValue={(text) => {
          setLeft(false);
          onValue({ first, again: text });
        }}
        onBlur={() => setLeft(true)}
        error={differs ? 'This is not the same password.' : undefined}
      />
    </>
  );
}
