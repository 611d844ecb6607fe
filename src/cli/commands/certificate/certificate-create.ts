/** `vault certificate create`: the private CA issues immediately; an ACME CA issues through a queued renewal. */
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { createCertificate } from '../../../domain/certificates/certificates.ts';
import { clockFault } from '../../../domain/doctor/upkeep-findings.ts';
import { createCertificateInput, parseInput } from '../../../domain/inputs.ts';
import { certificateSummary } from '../../../domain/versions/certificate-lookup.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { labelOption } from '../label-options.ts';
import { issuanceOptions, leafOptions, nameOption, waitOptions } from './certificate-options.ts';
import type { ChangedCertificate } from './certificates-there.ts';
import { csrOption, readRequestFile } from './request-file.ts';
import { watchRenewal } from './watch-renewal.ts';
import { watchThere } from './watch-there.ts';

type Issued = { readonly version: number; readonly not_after: string };

export const createCommand = command({
  name: 'certificate create',
  description: 'Create a certificate from the private CA or an ACME CA',
  examples: [
    {
      does: 'Issue a certificate from the private CA',
      line: 'vault certificate create --name web --domain www.example.test',
    },
    {
      does: 'Issue a client certificate for a workload, without a DNS name',
      line: 'vault certificate create --name billing --usage client --uri spiffe://example.org/billing --lifetime 1h',
    },
    {
      does: 'Issue for a key that the client keeps, with the names in its request',
      line: 'vault certificate create --name db --csr db.csr',
    },
    {
      does: 'Issue a certificate that API keys and people find by its labels',
      line: 'vault certificate create --name intranet --domain intranet.example.test --label team=web --label env=prod',
    },
    {
      does: "Order a certificate from Let's Encrypt and wait for it",
      line: 'vault certificate create --name shop --domain shop.example.com --domain example.com --issuer letsencrypt --wait',
    },
  ],
  options: {
    ...nameOption,
    domain: {
      type: 'string',
      valueHint: 'DOMAIN',
      multiple: true,
      description: 'a DNS name, a wildcard or an IP address',
    },
    ...issuanceOptions,
    lifetime: {
      type: 'string',
      valueHint: 'TIME',
      description: 'how long versions issued by the private CA are valid (default: 90d)',
    },
    ...leafOptions,
    csr: csrOption,
    ...labelOption,
    'reuse-key': { type: 'boolean', description: 'keep the same private key at each renewal' },
    ...waitOptions,
  },
  run: async (args, terminal) => {
    const names = [...args.domain, ...args.uri, ...args.email, ...args.subject];
    if (args.csr !== undefined && args['key-type'] !== undefined) {
      throw new Misuse('--csr and --key-type exclude each other', 'The key of the CSR has its type already.');
    }
    if (names.length === 0 && args.csr === undefined) {
      throw new Misuse('--domain is missing', 'Try: vault certificate create --help');
    }
    const wanted = {
      name: args.name,
      ...(args.domain.length > 0 && { domains: args.domain }),
      reuse_key: args['reuse-key'],
      ...(args.issuer !== undefined && { issuer: args.issuer }),
      ...(args['fallback-issuer'] !== undefined && { fallback_issuer: args['fallback-issuer'] }),
      ...(args['key-type'] !== undefined && { key_type: args['key-type'] }),
      ...(args.lifetime !== undefined && { lifetime: args.lifetime }),
      ...(args.profile !== undefined && { profile: args.profile }),
      ...(args.challenge !== undefined && { challenge: args.challenge }),
      ...(args.usage !== undefined && { usage: args.usage }),
      ...(args.uri.length > 0 && { uris: args.uri }),
      ...(args.email.length > 0 && { emails: args.email }),
      ...(args.subject.length > 0 && { subject: args.subject }),
      ...(args.label.length > 0 && { labels: args.label }),
      ...(args.csr !== undefined && { csr: await readRequestFile(args.csr, terminal) }),
    };
    const input = parseInput(createCertificateInput, wanted);
    const { name } = input;
    const said = ({ current, isQueued }: { current: Issued | undefined; isQueued: boolean }) => {
      if (isQueued) {
        terminal.stderr.write(
          `Created ${name}. "vault serve" orders it from ${input.issuer}.\n` +
            `  To watch the order: vault certificate renew --name ${name} --wait\n`,
        );
      } else if (current !== undefined) {
        terminal.stdout.write(`${name}: version ${current.version}, valid until ${current.not_after}\n`);
      }
    };
    await onVault(
      args,
      terminal,
      'create',
      async (vault) => {
        const clock = await clockFault(vault);
        if (clock !== undefined)
          terminal.stderr.write(`Warning: ${clock.message}.\n  ${clock.hint.replaceAll('\n', '\n  ')}\n`);
        const renewal = await createCertificate(vault, localCli, input);
        if (renewal !== undefined && args.wait) {
          await watchRenewal(vault, terminal, { id: renewal, name });
          return;
        }
        const current = (await certificateSummary(vault, name))?.current ?? undefined;
        said({
          isQueued: renewal !== undefined,
          current: current && { version: current.version, not_after: formatTimestamp(current.not_after) },
        });
      },
      async (remote) => {
        const { certificate, renewal } = await remote.send<ChangedCertificate>(
          'POST',
          '/certificates',
          wanted,
        );
        if (renewal !== null && args.wait) await watchThere(remote, terminal, { id: renewal, name });
        else said({ isQueued: renewal !== null, current: certificate.current_version ?? undefined });
      },
    );
  },
});
