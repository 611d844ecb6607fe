/** How old the last backup is, and how one is made. */
import type { About } from '../administration-shapes.ts';
import { useNow } from '../clock.ts';
import { CopyBlock } from '../components/copy.tsx';
import { Notice } from '../components/notice.tsx';
import { Section } from '../components/page.tsx';
import { Time } from '../components/time.tsx';
import { day } from '../time.ts';

/** From so old on it is worth a word. */
const stale = 7 * day;

/** Nothing where the vault does not say. */
export function AboutBackup({ backup }: { readonly backup: About['backup'] | undefined }) {
  const now = useNow();
  if (backup === undefined) return null;
  const { last_at } = backup;
  const isStale = last_at === null || now - Date.parse(last_at) > stale;
  return (
    <Section title="Backup">
      <div class="form stack">
        {last_at === null ? (
          <Notice tone="warning" title="No backup was made yet">
            What is lost with this machine is lost for good. One file holds the whole vault:
          </Notice>
        ) : (
          <Notice tone={isStale ? 'warning' : 'good'}>
            Last backup: <Time at={last_at} show="both" />
            {isStale && '. A newer one would lose less:'}
          </Notice>
        )}
        {isStale && (
          <>
            <CopyBlock text="vault backup FILE" label="How a backup is made" />
            <p class="quiet">
              It runs on the vault’s own machine while the vault works. The master key is not in it: keep that
              somewhere else.
            </p>
          </>
        )}
      </div>
    </Section>
  );
}
