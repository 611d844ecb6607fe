/** `vault certificate list --deleted`: deleted certificates, and when each is purged. */
import { formatTimestamp, parseTimestamp } from '../../../base/timestamp.ts';
import {
  type DeletedCertificateView,
  listDeleted,
} from '../../../domain/certificates/deleted-certificates.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';
import { jsonText, table } from '../../terminal/output.ts';
import type { Terminal } from '../../terminal/terminal.ts';

const pageSize = 1000;

/** Prints all deleted certificates; `keepFor` is how long they are kept, in milliseconds. */
export async function printDeleted(
  vault: DatabaseContext,
  { stdout, stderr }: Terminal,
  keepFor: number,
  asJson: boolean,
): Promise<void> {
  const deleted = (await allDeleted(vault)).map((view) => ({
    ...view,
    purge_at: formatTimestamp((parseTimestamp(view.deleted_at) ?? 0) + keepFor),
  }));
  if (asJson) stdout.write(jsonText(deleted));
  else if (deleted.length === 0) stderr.write('No deleted certificates.\n');
  else {
    const cells = deleted.map((one) => [
      ...[one.name, one.deleted_at, one.deleted_by, one.purge_at],
      one.domains.join(' '),
    ]);
    stdout.write(table(['NAME', 'DELETED', 'BY', 'PURGED AFTER', 'DOMAINS'], cells));
  }
}

async function allDeleted(vault: DatabaseContext): Promise<DeletedCertificateView[]> {
  const all: DeletedCertificateView[] = [];
  for (;;) {
    const page = await listDeleted(vault, { after: all.at(-1)?.id, limit: pageSize });
    all.push(...page);
    if (page.length < pageSize) return all;
  }
}
