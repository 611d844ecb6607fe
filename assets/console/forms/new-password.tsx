/** Two fields for a new password, used at setup, to change a password and for keystores. */
import { useState } from 'preact/hooks';
import { TextField } from '../components/field.tsx';

export type NewPassword = {
  readonly first: string;
  readonly again: string;
};

export const emptyPassword: NewPassword = { first: '', again: '' };

/** True if both fields hold the same password. */
export const isConfirmed = ({ first, again }: NewPassword): boolean => first !== '' && first === again;

export function NewPasswordFields({
  label,
  hint = 'At least 12 characters. An unusual sentence works well.',
  value,
  onValue,
  error,
}: {
  readonly label: string;
  readonly hint?: string;
  readonly value: NewPassword;
  readonly onValue: (value: NewPassword) => void;
  readonly error: string | undefined;
}) {
  const [hasBlurred, setBlurred] = useState(false);
  const { first, again } = value;
  // While the person types, the beginning of the same password is not an error.
  const differs = again !== '' && (hasBlurred ? again !== first : !first.startsWith(again));
  const plain = { type: 'password', autocomplete: 'new-password' } as const;
  return (
    <>
      <TextField
        {...plain}
        label={label}
        name="new-password"
        hint={hint}
        value={first}
        onValue={(text) => onValue({ first: text, again })}
        error={error}
      />
      <TextField
        {...plain}
        label={`Confirm ${label.toLowerCase()}`}
        name="new-password-again"
        value={again}
        onValue={(text) => {
          setBlurred(false);
          onValue({ first, again: text });
        }}
        onBlur={() => setBlurred(true)}
        error={differs ? 'The passwords do not match.' : undefined}
      />
    </>
  );
}
