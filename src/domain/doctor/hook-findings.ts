/**
 * Findings about hooks that other users can change: the vault refuses to run them, and a renewal is a bad time to learn
 * it.
 */
import { judgePath } from '../../base/paths/trusted-path.ts';
import { listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { hookUse } from '../../net/hook-trust.ts';
import type { DatabaseContext } from '../contexts.ts';
import { programsOf } from '../dns-providers/dns-records.ts';
import type { DnsProviderContext } from '../issuance-contexts.ts';
import { viewChannels } from '../notifications/notification-views.ts';
import type { Finding } from './finding.ts';
import { pathFindings } from './path-findings.ts';

/** The programs of DNS providers and of channels that other users can change. */
export async function hookFindings(vault: DatabaseContext & DnsProviderContext): Promise<Finding[]> {
  const rows = await listDnsProviders(vault.db.reader);
  const ofProviders = await Promise.all(
    rows.map((row) =>
      programsOf(vault, row).catch((error: unknown) => {
        // Its next use reports the invalid settings.
        if (error instanceof DnsProviderError) return [];
        throw error;
      }),
    ),
  );
  const channels = await viewChannels(vault);
  const ofChannels = channels.flatMap(({ type, target }) => (type === 'exec' ? [target] : []));
  const programs = [...new Set([...ofProviders.flat(), ...ofChannels])];
  const findings = await Promise.all(
    programs.map(async (program) => pathFindings(program, await judgePath(program, hookUse))),
  );
  return findings.flat();
}
