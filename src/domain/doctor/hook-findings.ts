/**
 * Findings about hooks that other users can change: the vault refuses to run them, and a renewal is a bad time to learn
 * it.
 */
import { judgePath } from '../../base/paths/trusted-path.ts';
import { listDeployTargets } from '../../db/tables/deploy-targets.ts';
import { listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { hookUse } from '../../net/hook-trust.ts';
import { execTarget } from '../../targets/exec-target.ts';
import type { DatabaseContext, KeyringContext } from '../contexts.ts';
import { openTargetSettings } from '../deploy-targets/deploy-targets.ts';
import { programsOf } from '../dns-providers/dns-records.ts';
import type { DnsProviderContext } from '../issuance-contexts.ts';
import { viewChannels } from '../notifications/notification-views.ts';
import type { Finding } from './finding.ts';
import { pathFindings } from './path-findings.ts';

/** The programs of DNS providers, channels and deploy targets that other users can change. */
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
  const ofTargets = await programsOfTargets(vault);
  const programs = [...new Set([...ofProviders.flat(), ...ofChannels, ...ofTargets])];
  const findings = await Promise.all(
    programs.map(async (program) => pathFindings(program, await judgePath(program, hookUse))),
  );
  return findings.flat();
}

async function programsOfTargets(vault: DatabaseContext & KeyringContext): Promise<string[]> {
  const rows = (await listDeployTargets(vault.db.reader)).filter(({ type }) => type === execTarget.type);
  return rows.flatMap((row) => {
    // The next installation reports invalid settings.
    const { data } = execTarget.config.safeParse(openTargetSettings(vault, row));
    return data?.command.slice(0, 1) ?? [];
  });
}
