/** Which certificates an API key is for: chosen ones, found by search, or any. */
import { useId, useState } from 'preact/hooks';
import { Checkbox, TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { useList } from '../resource.ts';
import type { Certificate } from '../shapes.ts';

/** So many are listed at once; the search finds the others. */
const shownAtOnce = 30;

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
      <legend>For which certificates</legend>
      <div class="choices">
        <label>
          <input type="radio" name={id} checked={!isAny} onChange={() => onChosen([])} />
          <span>Those that I choose</span>
        </label>
        <label>
          <input type="radio" name={id} checked={isAny} onChange={() => onChosen(['*'])} />
          <span>Any certificate, also those that are added later</span>
        </label>
      </div>
      {!isAny && <Names chosen={chosen} onChosen={onChosen} />}
      {error && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}

function Names({
  chosen,
  onChosen,
}: {
  readonly chosen: readonly string[];
  readonly onChosen: (names: readonly string[]) => void;
}) {
  const [search, setSearch] = useState('');
  const { data, error, reload } = useList<Certificate>('/certificates');
  if (error) return <Problem error={error} retry={reload} />;
  const wanted = search.trim().toLowerCase();
  const found = (data ?? []).filter(
    ({ name, domains }) =>
      wanted === '' || [name, ...domains].some((text) => text.toLowerCase().includes(wanted)),
  );
  const shown = found.slice(0, shownAtOnce);
  if (data?.length === 0) {
    return (
      <p>
        There are no certificates yet. <a href="/new-certificate">Make the first one</a>, or let the key be
        for any.
      </p>
    );
  }
  return (
    <>
      {(data?.length ?? 0) > 6 && (
        <TextField
          label="Search"
          type="search"
          value={search}
          onValue={setSearch}
          placeholder="Name or domain"
        />
      )}
      <div class="choice-list">
        {shown.map(({ name, domains }) => (
          <Checkbox
            key={name}
            label={name}
            hint={domains.join() === name ? undefined : domains.join(', ')}
            isChecked={chosen.includes(name)}
            onChecked={(isChecked) =>
              onChosen(isChecked ? [...chosen, name] : chosen.filter((other) => other !== name))
            }
          />
        ))}
        {found.length > shown.length && (
          <p class="quiet">{found.length - shown.length} more: search for them</p>
        )}
        {found.length === 0 && data && <p class="quiet">No certificate is called so.</p>}
      </div>
      <p class="quiet" role="status">
        {chosen.length === 0 ? 'None chosen' : `Chosen: ${chosen.join(', ')}`}
      </p>
    </>
  );
}
