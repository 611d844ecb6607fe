/** Information about the vault for administrators: its version, checks and counts. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { lastBackupAt } from '../../domain/backup/backup-age.ts';
import { readiness } from '../../domain/doctor/readiness.ts';
import { countHoldings } from '../../domain/doctor/vault-counts.ts';
import { aboutSchema } from '../openapi/audit-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';

export const aboutRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/about',
    id: 'getAbout',
    summary: 'Return version, checks and counts',
    access: { kind: 'administrator' },
    query: noQuery,
    replies: { 200: { description: 'version, checks and counts', schema: aboutSchema } },
    problems: [],
    handle: async ({ context: { vault, version, tls } }) => {
      const counts = await countHoldings(vault);
      const at = await lastBackupAt(vault.db.reader);
      const backup = { last_at: at === undefined ? null : formatTimestamp(at) };
      return json(200, { version, ...(await readiness(vault)), counts, backup, tls: tls() });
    },
  }),
];
