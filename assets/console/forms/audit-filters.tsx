/** The filters of the audit log. They are kept in the page's URL, so that people can bookmark and share a view. */
import { useEffect, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import { changeQuery } from '../router.ts';

/** Audit actions to choose from, as in src/domain/audit/audit.ts. */
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

/** Translates the query of the page to the query of the API. */
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
      <TextFilter name="actor" label="Actor" placeholder="admin:alice" query={query} />
      <Select
        label="Action"
        value={action}
        onValue={(value) => changeQuery({ action: value })}
        choices={[{ value: '', label: 'Any' }, ...known.map((value) => ({ value, label: value }))]}
      />
      <TextFilter name="resource" label="Certificate" placeholder="www" query={query} prefix="certificate:" />
      <TimeFilter name="since" label="From" query={query} />
      <TimeFilter name="until" label="Until" query={query} />
      {isFiltered && (
        <Button look="quiet" onClick={() => changeQuery(Object.fromEntries(names.map((name) => [name, ''])))}>
          Clear
        </Button>
      )}
    </search>
  );
}

type FilterProps = { readonly name: string; readonly label: string; readonly query: URLSearchParams };

/** A text filter that applies 400 ms after the last keystroke. */
function TextFilter({
  name,
  label,
  placeholder,
  query,
  prefix = '',
}: FilterProps & {
  readonly placeholder: string;
  /** Added to text without a colon; other kinds of resources are typed in full, such as `issuer:local-ca`. */
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

/** A time shown in the person's time zone and kept in the URL in the format of the API. */
function TimeFilter({ name, label, query }: FilterProps) {
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

/** `2026-11-21T14:30`, the format of datetime-local inputs. */
function localText(at: number): string {
  if (Number.isNaN(at)) return '';
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
