/** How many certificates are in which state. Each tile filters the list below. */
import { useMemo } from 'preact/hooks';
import { type Group, groupOf, groups, healths } from '../certificates/certificate-health.ts';
import { Tooltips } from '../components/tooltip.tsx';
import type { Certificates } from '../data/growing-list.ts';
import { changeQuery, usePlace } from '../router.ts';

/** Until all certificates are loaded, the counts say that they are not final. */
export function CertificateTiles({ items, isWhole }: Certificates) {
  const { query } = usePlace();
  const selected = query.get('group');
  const byGroup = useMemo(() => Map.groupBy(items, groupOf), [items]);
  const countOf = (id: Group) => byGroup.get(id)?.length ?? 0;
  return (
    <Tooltips>
      <fieldset class="tiles" aria-label="Certificates by state">
        {groups
          .filter(({ id }) => id !== 'inactive' || countOf(id) > 0 || selected === id)
          .map(({ id, label, rule }) => (
            <button
              key={id}
              type="button"
              class="tile"
              data-tip={rule}
              aria-description={rule}
              aria-pressed={selected === id}
              onClick={() => changeQuery({ group: selected === id ? '' : id, status: '' })}
            >
              <span class={`tile-label tile-${countOf(id) > 0 ? healths[id] : 'none'}`}>
                <span class={`mark mark-${healths[id]}`} aria-hidden="true" />
                {label}
              </span>{' '}
              <span class="tile-count">
                {countOf(id).toLocaleString()}
                {!isWhole && <small> so far</small>}
              </span>
            </button>
          ))}
      </fieldset>
    </Tooltips>
  );
}
