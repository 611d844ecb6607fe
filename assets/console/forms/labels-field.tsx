/** The labels of a certificate or an API key. People whose reach is bound to labels must give one of them. */
import { TextField } from '../components/field.tsx';
import { useSession } from '../data/session.ts';

export function LabelsField({
  hint,
  value,
  error,
  refusal,
  onValue,
}: {
  readonly hint: string;
  readonly value: string;
  readonly error: string | undefined;
  /** Why the person may not change them. */
  readonly refusal?: string | undefined;
  readonly onValue: (value: string) => void;
}) {
  const reach = useSession()?.reach ?? [];
  const needed = reach.length === 0 ? '' : ` One of them must be ${reach.join(' or ')}.`;
  return (
    <TextField
      label={reach.length === 0 ? 'Labels (optional)' : 'Labels'}
      hint={refusal ?? `${hint}${needed}`}
      value={value}
      error={error}
      disabled={refusal !== undefined}
      onValue={onValue}
    />
  );
}

/** What a person with a reach starts with: they cannot create anything without one of its labels. */
export function useOwnLabels(): string {
  return useSession()?.reach[0] ?? '';
}
