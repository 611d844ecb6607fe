/** `vault certificate list --deleted`: deleted certificates, and when each is purged. */
import {
  type DeletedCertificateView,
  listDeleted,
} from '../../../domain/certificates/deleted-certificate-views.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';
import { printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';

const pageSize = 1000;

/** Prints deleted certificates. */
export function printDeleted(
  deleted: readonly DeletedCertificateView[],
  terminal: Terminal,
  shape: { readonly json: boolean },
): void {
  printList(terminal, shape, deleted, {
    none: 'No deleted certificates.',
    columns: [
      { title: 'NAME', holds: 'name' },
      { title: 'DELETED', holds: 'time' },
      { title: 'BY', holds: 'name' },
      { title: 'PURGED AFTER', holds: 'time' },
      { title: 'DOMAINS', holds: 'list' },
    ],
    row: (one) => [one.name, one.deleted_at, one.deleted_by, one.purge_at, one.domains],
  });
}

/** All deleted certificates, in the order of deletion; `keepFor` is how long they are kept, in milliseconds. */
export async function allDeleted(vault: DatabaseContext, keepFor: number): Promise<DeletedCertificateView[]> {
  const all: DeletedCertificateView[] = [];
  for (;;) {
    const page = await listDeleted(vault, keepFor, { after: all.at(-1)?.id, limit: pageSize });
    all.push(...page);
    if (page.length < pageSize) return all;
  }
}
