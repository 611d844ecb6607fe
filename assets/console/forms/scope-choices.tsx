/** What an API key may do with its certificates. */
import { Checkbox } from '../components/field.tsx';
import { useRefusal } from '../data/session.ts';

const scopes = [
  {
    name: 'certificates:read',
    label: 'Read certificates',
    hint: 'Download certificates and chains, and read their details (certificates:read).',
  },
  {
    name: 'private_keys:read',
    label: 'Read private keys',
    hint: 'Download private keys, which servers need (private_keys:read).',
  },
  {
    name: 'renewals:trigger',
    label: 'Request renewals',
    hint: 'Request a new version of a certificate at any time (renewals:trigger).',
  },
  {
    name: 'certificates:sign',
    label: 'Send signing requests',
    hint: 'Have the certificate issued for a key that the machine keeps (certificates:sign).',
  },
] as const;

/** What a client of the installer needs, as far as the person may give it. */
export function useUsualScopes(): readonly string[] {
  const hidden = useRefusal('private_keys:read');
  return hidden === undefined ? ['certificates:read', 'private_keys:read'] : ['certificates:read'];
}

export function ScopeChoices({
  chosen,
  onChosen,
  error,
}: {
  readonly chosen: readonly string[];
  readonly onChosen: (scopes: readonly string[]) => void;
  readonly error: string | undefined;
}) {
  const hidden = useRefusal('private_keys:read');
  return (
    <fieldset class="card stack">
      <legend>Permissions</legend>
      {scopes.map((scope) => (
        <Checkbox
          key={scope.name}
          label={scope.label}
          {...(scope.name === 'private_keys:read' && hidden !== undefined
            ? { hint: hidden, isDisabled: true }
            : { hint: scope.hint })}
          isChecked={chosen.includes(scope.name)}
          onChecked={(isChecked) =>
            onChosen([...chosen.filter((other) => other !== scope.name), ...(isChecked ? [scope.name] : [])])
          }
        />
      ))}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}
