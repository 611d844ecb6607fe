/** The age of the last backup, and the command that creates one. */

import { CopyBlock } from '../components/copy.tsx';
import { Notice } from '../components/notice.tsx';
import { Section } from '../components/page.tsx';
import { Time } from '../components/time.tsx';
import type { About } from '../data/administration-shapes.ts';
import { useNow } from '../text/clock.ts';
import { day } from '../text/time.ts';

/** Backups older than this get a warning. */
const stale = 7 * day;

/** Renders nothing if the vault does not report backups. */
export function AboutBackup({ backup }: { readonly backup: About['backup'] | undefined }) {
  const now = useNow();
  if (backup === undefined) return null;
  const { last_at } = backup;
  const isStale = last_at === null || now - Date.parse(last_at) > stale;
  return (
    <Section title="Backup">
      <div class="form stack">
        {last_at === null ? (
          <Notice tone="warning" title="No backups yet">
            If this machine is lost, every certificate and key is lost with it. Back up the whole vault to one
            file:
          </Notice>
        ) : (
          <Notice tone={isStale ? 'warning' : 'good'}>
            Last backup: <Time at={last_at} show="both" />
            {isStale && '. Create a new one:'}
          </Notice>
        )}
        {isStale && (
          <>
            <CopyBlock text="vault backup FILE" label="Backup command" />
            <p class="quiet">
              Run this on the vault’s host while the vault is running. The backup does not contain the master
              key; store a copy of the key separately.
            </p>
          </>
        )}
      </div>
    </Section>
  );
}
