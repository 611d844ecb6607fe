/** `vault certificate create`: the private CA issues immediately; an ACME CA issues through a queued renewal. */
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { createCertificate } from '../../../domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../domain/inputs.ts';
import { certificateSummary } from '../../../domain/versions/certificate-lookup.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { issuanceOptions, nameOption, waitOptions } from './certificate-options.ts';
import { watchRenewal } from './watch-renewal.ts';

export const createCommand = command({
  name: 'certificate create',
  description: 'Create a certificate from the private CA or an ACME CA',
  examples: [
    {
      does: 'Issue a certificate from the private CA',
      line: 'vault certificate create --name web --domain www.example.test',
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
      required: true,
      multiple: true,
      description: 'a DNS name, a wildcard or an IP address',
    },
    ...issuanceOptions,
    lifetime: {
      type: 'string',
      valueHint: 'TIME',
      description: 'how long versions issued by the private CA are valid (default: 90d)',
    },
    'reuse-key': { type: 'boolean', description: 'keep the same private key at each renewal' },
    ...waitOptions,
  },
  run: async (args, terminal) => {
    const input = parseInput(createCertificateInput, {
      name: args.name,
      domains: args.domain,
      reuse_key: args['reuse-key'],
      ...(args.issuer !== undefined && { issuer: args.issuer }),
      ...(args['fallback-issuer'] !== undefined && { fallback_issuer: args['fallback-issuer'] }),
      ...(args['key-type'] !== undefined && { key_type: args['key-type'] }),
      ...(args.lifetime !== undefined && { lifetime: args.lifetime }),
      ...(args.profile !== undefined && { profile: args.profile }),
      ...(args.challenge !== undefined && { challenge: args.challenge }),
    });
    const { name } = input;
    await withVault(args, terminal, 'create', async (vault) => {
      const renewal = await createCertificate(vault, localCli, input);
      if (renewal !== undefined && args.wait) {
        await watchRenewal(vault, terminal, { id: renewal, name });
        return;
      }
      if (renewal !== undefined) {
        terminal.stderr.write(
          `Created ${name}. "vault serve" orders it from ${input.issuer}.\n` +
            `  To watch the order: vault certificate renew --name ${name} --wait\n`,
        );
        return;
      }
      const current = (await certificateSummary(vault, name))?.current;
      if (current == null) return;
      const until = formatTimestamp(current.not_after);
      terminal.stdout.write(`${name}: version ${current.version}, valid until ${until}\n`);
    });
  },
});
