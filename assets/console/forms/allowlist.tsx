/** Which certificates an API key is for: chosen ones, found by search, or any. */
import { useId, useMemo, useState } from 'preact/hooks';
import { listed } from '../certificate-list.ts';
import { useCertificates } from '../certificates.ts';
import { Checkbox, TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { Skeleton } from '../components/spinner.tsx';

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
  // Chosen ones are on top from the next search on: nothing moves away under the pointer.
  const [onTop, setOnTop] = useState(chosen);
  const { data, error, reload } = useCertificates();
  const items = data?.items ?? [];
  const fitting = useMemo(
    () => listed(items, { search, status: '', issuer: '', sort: 'name' }),
    [data, search],
  );
  if (error && !data) return <Problem error={error} retry={reload} />;
  if (!data) return <Skeleton lines={3} />;
  if (items.length === 0) {
    return (
      <p>
        There are no certificates yet. <a href="/new-certificate">Make the first one</a>, or let the key be
        for any.
      </p>
    );
  }
  const top = onTop.map((name) => items.find((item) => item.name === name) ?? { name, domains: [] });
  const others = fitting.filter(({ name }) => !onTop.includes(name));
  const shown = [...top.slice(0, shownAtOnce), ...others.slice(0, shownAtOnce)];
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
        {fitting.length === 0 && data.isWhole && <p class="quiet">No certificate is called so.</p>}
        {hidden > 0 && <p class="quiet">{hidden.toLocaleString()} more: search for them</p>}
        {!data.isWhole && <p class="quiet">Still loading…</p>}
      </div>
      <p class="quiet" role="status">
        {chosenText(chosen)}
      </p>
    </>
  );
}

function chosenText(chosen: readonly string[]): string {
  if (chosen.length === 0) return 'None chosen';
  if (chosen.length <= 12) return `Chosen: ${chosen.join(', ')}`;
  return `Chosen: ${chosen.slice(0, 10).join(', ')} and ${chosen.length - 10} more`;
}
