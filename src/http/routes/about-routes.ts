/** Information about the vault for administrators: its version, checks and counts. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { countApiKeys } from '../../db/tables/api-keys.ts';
import { countByStatus } from '../../db/tables/certificate-search.ts';
import { listDnsProviders } from '../../db/tables/dns-providers.ts';
import { listIssuers } from '../../db/tables/issuers.ts';
import { lastBackupAt } from '../../domain/backup/backup-age.ts';
import { readiness } from '../../domain/doctor/readiness.ts';
import { listAccounts } from '../../domain/issuance/acme-accounts.ts';
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
      const { db, world } = vault;
      const counts = {
        certificates: await countByStatus(db.reader, world.now()),
        api_keys: await countApiKeys(db.reader),
        issuers: (await listIssuers(db.reader)).length,
        dns_providers: (await listDnsProviders(db.reader)).length,
        acme_accounts: (await listAccounts(vault)).length,
      };
      const at = await lastBackupAt(db.reader);
      const backup = { last_at: at === undefined ? null : formatTimestamp(at) };
      return json(200, { version, ...(await readiness(vault)), counts, backup, tls: tls() });
    },
  }),
];
