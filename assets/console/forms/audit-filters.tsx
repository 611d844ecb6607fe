/** What of the audit log is shown; it stands in the address, so that it can be kept and sent to others. */
import { useEffect, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import { changeQuery } from '../router.ts';

/** src/domain/audit/audit.ts */
const actions = [
  'access.refuse',
  ...['deactivate', 'delete', 'register', 'rollover'].map((verb) => `acme_account.${verb}`),
  ...['create', 'delete', 'password'].map((verb) => `administrator.${verb}`),
  ...['create', 'delete', 'revoke'].map((verb) => `api_key.${verb}`),
  ...['create', 'delete', 'download', 'import', 'issue', 'revoke', 'update'].map(
    (verb) => `certificate.${verb}`,
  ),
  ...['create', 'delete'].map((verb) => `dns_provider.${verb}`),
  ...['create', 'delete', 'update'].map((verb) => `issuer.${verb}`),
  ...['fail', 'request'].map((verb) => `renewal.${verb}`),
  ...['create', 'end', 'refuse'].map((verb) => `session.${verb}`),
];

const names = ['actor', 'action', 'resource', 'since', 'until'] as const;

/** The query of the API for that of the page. */
export function auditQuery(query: URLSearchParams): URLSearchParams {
  const wanted = new URLSearchParams();
  for (const name of names) {
    const value = query.get(name) ?? '';
    if (value !== '') wanted.set(name, value);
  }
  return wanted;
}

export function AuditFilters({ query }: { readonly query: URLSearchParams }) {
  const isFiltered = names.some((name) => query.has(name));
  const action = query.get('action') ?? '';
  const known = actions.includes(action) || action === '' ? actions : [action, ...actions];
  return (
    <search class="filters">
      <Typed name="actor" label="Actor" placeholder="admin:alice" query={query} />
      <Select
        label="Action"
        value={action}
        onValue={(value) => changeQuery({ action: value })}
        choices={[{ value: '', label: 'Any' }, ...known.map((value) => ({ value, label: value }))]}
      />
      <Typed name="resource" label="Certificate" placeholder="www" query={query} prefix="certificate:" />
      <Moment name="since" label="From" query={query} />
      <Moment name="until" label="Until" query={query} />
      {isFiltered && (
        <Button look="quiet" onClick={() => changeQuery(Object.fromEntries(names.map((name) => [name, ''])))}>
          Clear
        </Button>
      )}
    </search>
  );
}

type FilterProps = { readonly name: string; readonly label: string; readonly query: URLSearchParams };

/** Takes effect when the person has stopped typing. */
function Typed({
  name,
  label,
  placeholder,
  query,
  prefix = '',
}: FilterProps & {
  readonly placeholder: string;
  /** Stands before what people write; other kinds of things are written out: `issuer:local-ca`. */
  readonly prefix?: string;
}) {
  const whole = query.get(name) ?? '';
  const current = whole.startsWith(prefix) ? whole.slice(prefix.length) : whole;
  const [text, setText] = useState(current);
  useEffect(() => setText(current), [current]);
  useEffect(() => {
    if (text === current) return;
    const timer = setTimeout(() => changeQuery({ [name]: complete(text.trim(), prefix) }), 400);
    return () => clearTimeout(timer);
  }, [text, current, name, prefix]);
  return <TextField label={label} type="search" placeholder={placeholder} value={text} onValue={setText} />;
}

function complete(text: string, prefix: string): string {
  return text === '' || text.includes(':') ? text : `${prefix}${text}`;
}

/** A moment in the person's time zone, in the address as the API has it. */
function Moment({ name, label, query }: FilterProps) {
  const current = query.get(name);
  return (
    <TextField
      label={label}
      type="datetime-local"
      value={current === null ? '' : localText(Date.parse(current))}
      onValue={(text) => changeQuery({ [name]: text === '' ? '' : new Date(text).toISOString() })}
    />
  );
}

/** `2026-11-21T14:30`, as the browser's control wants it. */
function localText(at: number): string {
  if (Number.isNaN(at)) return '';
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
