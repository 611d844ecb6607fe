/** The certificates that an API key may access: selected ones, or any. */
import { useId, useMemo, useState } from 'preact/hooks';
import { filteredAndSorted } from '../certificates/certificate-list.ts';
import { Checkbox, TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { useCertificates } from '../data/certificates.ts';

/** At most this many are filteredAndSorted; people find the others by search. */
const listLimit = 30;

export function Allowlist({
  chosen,
  onChosen,
  error,
}: {
  /** `['*']` for any. */
  readonly chosen: readonly string[];
  readonly onChosen: (names: readonly string[]) => void;
  readonly error: string | undefined;
}) {
  const id = useId();
  const isAny = chosen[0] === '*';
  return (
    <fieldset class="card stack" aria-describedby={error === undefined ? undefined : `${id}-error`}>
      <legend>Certificates</legend>
      <div class="choices">
        <label>
          <input type="radio" name={id} checked={!isAny} onChange={() => onChosen([])} />
          <span>Selected certificates</span>
        </label>
        <label>
          <input type="radio" name={id} checked={isAny} onChange={() => onChosen(['*'])} />
          <span>Any certificate, including ones added later</span>
        </label>
      </div>
      {!isAny && <CertificateNames chosen={chosen} onChosen={onChosen} />}
      {error && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** A list to select certificates from, with a search. */
export function CertificateNames({
  chosen,
  onChosen,
}: {
  readonly chosen: readonly string[];
  readonly onChosen: (names: readonly string[]) => void;
}) {
  const [search, setSearch] = useState('');
  // Selected names move to the top only at the next search, so that no row moves under the pointer.
  const [onTop, setOnTop] = useState(chosen);
  const { data, error, reload } = useCertificates();
  const items = data?.items ?? [];
  const matching = useMemo(
    () => filteredAndSorted(items, { search, status: '', issuer: '', sort: 'name' }),
    [data, search],
  );
  if (error && !data) return <Problem error={error} retry={reload} />;
  if (!data) return <Skeleton lines={3} />;
  if (items.length === 0) {
    return (
      <p>
        No certificates yet. <a href="/new-certificate">Create a certificate</a> first.
      </p>
    );
  }
  const top = onTop.map((name) => items.find((item) => item.name === name) ?? { name, domains: [] });
  const others = matching.filter(({ name }) => !onTop.includes(name));
  const shown = [...top.slice(0, listLimit), ...others.slice(0, listLimit)];
  const hidden = top.length + others.length - shown.length;
  return (
    <>
      {items.length > 6 && (
        <TextField
          label="Search"
          type="search"
          value={search}
          onValue={(value) => {
            setSearch(value);
            setOnTop(chosen);
          }}
          placeholder="Name or domain"
        />
      )}
      <div class="choice-list">
        {shown.map(({ name, domains }) => (
          <Checkbox
            key={name}
            label={name}
            hint={domains.length === 0 || domains.join() === name ? undefined : domains.join(', ')}
            isChecked={chosen.includes(name)}
            onChecked={(isChecked) =>
              onChosen(isChecked ? [...chosen, name] : chosen.filter((other) => other !== name))
            }
          />
        ))}
        {matching.length === 0 && data.isWhole && <p class="quiet">No matching certificates</p>}
        {hidden > 0 && <p class="quiet">{hidden.toLocaleString()} more; use search to find them</p>}
        {!data.isWhole && <p class="quiet">Loading the rest…</p>}
      </div>
      <p class="quiet" role="status">
        {chosenText(chosen)}
      </p>
    </>
  );
}

function chosenText(chosen: readonly string[]): string {
  if (chosen.length === 0) return 'None selected';
  if (chosen.length <= 12) return `Selected: ${chosen.join(', ')}`;
  return `Selected: ${chosen.slice(0, 10).join(', ')} and ${chosen.length - 10} more`;
}
